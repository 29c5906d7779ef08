"""`heapwatch doctor`: installed packages, working collectors, the trainer, Prometheus."""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from heapwatch import discovery
from heapwatch.cli.sources import read_metrics
from heapwatch.errors import Unreachable
from heapwatch.http.client import base_url, get_json
from heapwatch.http.guards import find_token
from heapwatch.registration import choose, token_of
from heapwatch.runtime.failures import describe
from heapwatch.runtime.plain_text import say, say_json
from heapwatch.watch import Watch

# by distribution, what it is needed for
_REQUIRED = {"prometheus-client": "metrics", "psutil": "process memory"}
_OPTIONAL = {
    "nvidia-ml-py": "GPU memory and load by NVML: pip install 'heapwatch[gpu]'",
    "torch": "memory of torch's allocator, bytes of tensors",
    "numpy": "bytes of arrays",
    "box2d": "bodies of a Box2D world",
    "textual": "heapwatch top: pip install 'heapwatch[cli]'",
}
_LONGEST_LINE = 2000
_EPILOG = """
exit codes:
  0   nothing is wrong (optional packages may be missing)
  1   something failed; its line begins with FAIL
  64  the command line is wrong
"""


@dataclass(frozen=True)
class Check:
    """One line: `ok`, `none` (optional and missing), `WARN` or `FAIL`."""

    state: str
    what: str
    detail: str


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "doctor",
        help="check the installation, a trainer and Prometheus",
        description="Report what is installed, which collectors work, whether a trainer responds.",
        epilog=_EPILOG,
    )
    trainer = f"127.0.0.1:{os.environ.get('HEAPWATCH_TRAINER_PORT') or 7777}"
    prometheus = (
        os.environ.get("HEAPWATCH_PROMETHEUS_URL")
        or f"127.0.0.1:{os.environ.get('HEAPWATCH_PROMETHEUS_PORT') or 9090}"
    )
    parser.add_argument(
        "trainer", nargs="?", default=trainer, metavar="TRAINER", help="address (%(default)s)"
    )
    parser.add_argument("--prometheus", default=prometheus, metavar="URL", help="address (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only problems")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding and return 1 if one of them is a failure."""
    sections: list[tuple[str, list[Check]]] = []
    for title, found in _sections(base_url(arguments.trainer), base_url(arguments.prometheus)):
        sections.append((title, []))
        if not arguments.json and not arguments.quiet:
            say(title)
        for finding in found:
            sections[-1][1].append(finding)
            if not arguments.json and (not arguments.quiet or finding.state in ("WARN", "FAIL")):
                line = f"  {finding.state:<5} {finding.what:<18} {finding.detail}"
                say(line, most=_LONGEST_LINE)
    failed = any(finding.state == "FAIL" for _, findings in sections for finding in findings)
    if arguments.json:
        results = [{"title": title, "findings": list(map(asdict, findings))} for title, findings in sections]
        say_json({"ok": not failed, "sections": results})
    return 1 if failed else 0


def _sections(trainer: str, prometheus: str) -> Iterator[tuple[str, Iterator[Check]]]:
    yield "Installed", installed()
    yield "Collectors, tried in this process", collectors()
    yield "Token and targets", configuration()
    yield f"Trainer {trainer}", _usable(answering(trainer))
    yield f"Prometheus {prometheus}", _usable(scraped(prometheus, trainer))


def _usable(findings: Iterator[Check]) -> Iterator[Check]:
    """The findings, one of them for a response of unexpected types."""
    try:
        yield from findings
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        yield Check("FAIL", "answers", f"invalid response: {describe(error)}")


def installed() -> Iterator[Check]:
    """Report which packages are installed, and what needs the missing ones."""
    yield Check("ok", "python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    for name, purpose in (_REQUIRED | _OPTIONAL).items():
        try:
            yield Check("ok", name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Check("FAIL" if name in _REQUIRED else "none", name, f"not installed; for {purpose}")


def collectors() -> Iterator[Check]:
    """Read every collector that needs no objects of a trainer, in this process."""
    watch = Watch("doctor")
    idle = []
    exposition, failures = watch._exporter.exposition, watch._exporter.failures
    messages = _Messages()
    logging.getLogger("heapwatch").addHandler(messages)
    try:
        for collector in exposition.collectors:
            messages.seen.clear()
            before = failures.counts[collector.name]
            samples = sum(len(family.samples) for family in exposition.read(collector))
            if failures.counts[collector.name] > before:
                yield Check("FAIL", collector.name, "; ".join(messages.seen) or "failed before")
            elif samples:
                yield Check("ok", collector.name, f"{samples} series")
            else:
                idle.append(collector.name)
    finally:
        logging.getLogger("heapwatch").removeHandler(messages)
    if idle:
        yield Check("none", "without a trainer", f"nothing to read: {', '.join(idle)}")


def configuration() -> Iterator[Check]:
    """Report whether a stack runs, whether it can request cleanups, and where targets are written."""
    try:
        choice = choose()
    except OSError as error:
        yield Check("FAIL", "stack", str(error))
        return
    directory, stack = choice.folder, choice.stack
    try:
        if find_token() is not None:
            yield Check("ok", "token", "set by the environment")
        elif stack is not None and token_of(stack):
            yield Check("ok", "token", f"that of the stack: {stack.token_file}")
        else:
            yield Check("none", "token", "no stack runs and HEAPWATCH_TOKEN_FILE is not set: no cleanups")
    except (OSError, ValueError) as error:
        yield Check("FAIL", "token", str(error))
    if stack is None:
        yield Check("none", "stack", "no stack of this user runs: heapwatch up, or make up")
    else:
        yield Check("ok", "stack", f"{stack.state} runs; its dashboards are at {stack.dashboards}")
    if not directory.is_dir():
        yield Check("none", "targets", f"{directory} does not exist yet: the first trainer creates it")
    elif not os.access(directory, os.W_OK):
        yield Check("FAIL", "targets", f"{directory} cannot be written: Prometheus will find no trainer")
    else:
        live = discovery.addresses(directory)
        yield Check("ok", "targets", f"{directory}: {', '.join(live) or 'no live trainer'}")


def answering(trainer: str) -> Iterator[Check]:
    """Report whether a trainer responds, whether it trains, and which of its collectors fail."""
    try:
        health = get_json(f"{trainer}/healthz")
        readings = read_metrics(trainer)
    except Unreachable as error:
        yield Check("FAIL", "answers", str(error))
        return
    name = readings.labels("trainer_info").get("trainer", "a trainer without a name")
    yield Check("ok", "answers", name)
    training = health.get("training") if isinstance(health, dict) else "unknown"
    idle = health.get("seconds_since_progress") if isinstance(health, dict) else None
    since = f", last progress {idle:.0f} s ago" if isinstance(idle, (int, float)) else ""
    yield Check("ok" if training == "progressing" else "WARN", "training", f"{training}{since}")
    errors = readings.by("trainer_exporter_collect_errors_total", "collector")
    ages = readings.by("trainer_exporter_sample_age_seconds", "collector")
    for collector in sorted(errors.keys() | ages.keys()):
        age = f", sampled {ages[collector]:.0f} s ago" if collector in ages else ""
        count = errors.get(collector, 0)
        detail = f"{count:.0f} failures{age}; the trainer's log says why" if count else f"works{age}"
        yield Check("WARN" if count else "ok", collector, detail)


def scraped(prometheus: str, trainer: str) -> Iterator[Check]:
    """Report whether Prometheus is ready and scrapes this trainer."""
    try:
        targets = get_json(f"{prometheus}/api/v1/targets", {"state": "active"})["data"]["activeTargets"]
    except Unreachable as error:
        yield Check("FAIL", "answers", str(error))
        return
    except (LookupError, TypeError):
        yield Check("FAIL", "answers", "a service responds there, but it is not a Prometheus")
        return
    yield Check("ok", "answers", f"{len(targets)} active targets")
    address = _canonical(trainer)
    found = [target for target in targets if _canonical(target.get("scrapeUrl", "")) == address]
    if not found:
        yield Check("FAIL", "sees this trainer", "no; does it read the targets folder named above?")
    for target in found:
        up = target.get("health") == "up"
        detail = (
            f"job {target.get('labels', {}).get('job')}, {target.get('lastError') or target.get('health')}"
        )
        yield Check("ok" if up else "FAIL", "sees this trainer", detail)


class _Messages(logging.Handler):
    """Keeps what the collectors log, to show why one fails."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


def _canonical(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0]
    return authority.replace("localhost", "127.0.0.1")
