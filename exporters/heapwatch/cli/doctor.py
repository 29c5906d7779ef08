"""`heapwatch doctor`: installed packages, working collectors, the trainer, Prometheus."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from heapwatch import discovery
from heapwatch.cli.sources import read_metrics
from heapwatch.errors import Unreachable
from heapwatch.http.client import base_url, data_of, get_json, understood
from heapwatch.http.guards import find_token
from heapwatch.registration import choose, token_of
from heapwatch.runtime.plain_text import say
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
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print every finding and return 1 if one of them is a failure."""
    failed = False
    for title, found in _sections(base_url(arguments.trainer), base_url(arguments.prometheus)):
        say(title)
        for check in found:
            failed |= check.state == "FAIL"
            say(f"  {check.state:<5} {check.what:<18} {check.detail}", most=_LONGEST_LINE)
    return 1 if failed else 0


def _sections(trainer: str, prometheus: str) -> Iterator[tuple[str, Iterator[Check]]]:
    yield "Installed", installed()
    yield "Collectors, tried in this process", collectors()
    yield "Token and targets", configuration()
    yield f"Trainer {trainer}", answering(trainer)
    yield f"Prometheus {prometheus}", scraped(prometheus, trainer)


def installed() -> Iterator[Check]:
    """Report which packages are installed, and what needs the missing ones."""
    yield Check("ok", "python", f"{platform.python_version()} on {platform.platform(terse=True)}")
    for name, purpose in (_REQUIRED | _OPTIONAL).items():
        try:
            yield Check("ok", name, importlib.metadata.version(name))
        except importlib.metadata.PackageNotFoundError:
            yield Check("FAIL" if name in _REQUIRED else "none", name, f"not installed; for {purpose}")


def collectors() -> Iterator[Check]:
    """Read every collector that needs no objects of a trainer, in this process; failures are logged."""
    watch = Watch("doctor")
    idle = []
    exposition, failures = watch._exporter.exposition, watch._exporter.failures
    for collector in exposition.collectors:
        samples = sum(len(family.samples) for family in exposition.read(collector))
        if failures.counts[collector.name]:
            yield Check("FAIL", collector.name, "cannot be read; the log says why")
        elif samples:
            yield Check("ok", collector.name, f"{samples} series")
        else:
            idle.append(collector.name)
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
        readings = read_metrics(trainer)
    except Unreachable as error:
        yield Check("FAIL", "answers", str(error))
        return
    name = readings.labels("trainer_info").get("trainer", "a trainer without a name")
    yield Check("ok", "answers", name)
    training, idle = readings.training(time.time()), readings.seconds_since_progress(time.time())
    since = "" if idle is None else f", last progress {idle:.0f} s ago"
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
        answer = get_json(f"{prometheus}/api/v1/targets", {"state": "active"})
        with understood(prometheus):
            targets = data_of(answer)["activeTargets"]
    except Unreachable as error:
        yield Check("FAIL", "answers", str(error))
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


def _canonical(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0]
    return authority.replace("localhost", "127.0.0.1")
