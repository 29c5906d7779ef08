"""`heapwatch monitor` and `cleanup`: lines about trainers; cleanups by hand, or when a level is critical."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from heapwatch.analysis.limits import BODIES
from heapwatch.analysis.readings import MEMORY, Component, ExceededLimit
from heapwatch.cli import above_zero
from heapwatch.cli.reporter import Message, Reporter, Thresholds, described, named, title
from heapwatch.cli.sources import (
    PrometheusSource,
    Sample,
    SampleSource,
    TrainerSource,
    mapping,
    none_registered,
    number,
    registered_trainers,
    url_of_trainer,
)
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url, post_json
from heapwatch.http.guards import find_token
from heapwatch.registration import choose, token_of
from heapwatch.runtime.cleanup import ACTIONS
from heapwatch.runtime.failures import describe
from heapwatch.runtime.plain_text import plain, say

EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "emergency": 2, "unknown": 3}
_WORST = ("ok", "warning", "unknown", "critical", "emergency")
_MOST_MESSAGES = 100  # about one sample of one trainer
_LONGEST_LINE = 2000
COOLDOWN_SECONDS = 120.0
_WAIT_SECONDS = 30.0
_MONITOR_WAIT_SECONDS = 15.0
_CLEANED = ("memory", "bodies", "entities", "events", "buffer")
_MOST_LINES = 20
_LONGEST_TEXT = 300  # characters of a text from a trainer

_EPILOG = """
exit codes, of the last sample, worst trainer first:
  0   every level and growth rate is below its limit; healthy, warm-up, filling, too early or growing
  1   a warning: a limit is exceeded
  2   a critical or emergency limit is exceeded, leak or will not fit, or training is stalled
  3   a trainer, or Prometheus, does not respond
  64  the command line is wrong

Limits are those of the command line, else those that the trainer declares, else those of its profile.
Every trainer has limits of memory with workers: 85 % (warning), 93 % (critical) and 97 % (emergency) of what
is available. MB are 1e6 bytes. The token of --auto-cleanup is HEAPWATCH_TOKEN, else the content of
HEAPWATCH_TOKEN_FILE, else that of the running stack.

examples:
  heapwatch monitor
  heapwatch monitor --auto-cleanup --aggressive-thresholds
  heapwatch monitor --prometheus http://127.0.0.1:9090
  heapwatch monitor --count 1 127.0.0.1:7777 || echo "not healthy"
"""
_CLEANUP_EPILOG = """
The token is HEAPWATCH_TOKEN, else the content of HEAPWATCH_TOKEN_FILE, else that of the running stack.

exit codes:
  0   cleaned up
  3   no answer, or the trainer has not reached a safe point
  64  the command line is wrong, or there is no token

examples:
  heapwatch cleanup walker
  heapwatch cleanup 127.0.0.1:7777 --action regular
"""


def add_parser(commands: Any) -> None:
    """Add the subcommands."""
    parser = commands.add_parser(
        "monitor",
        help="watch one trainer or all, in the terminal",
        description="Watch one trainer or all, in the terminal.",
        epilog=_EPILOG,
    )
    where = parser.add_argument_group("trainers")
    where.add_argument(
        "trainers",
        nargs="*",
        metavar="TRAINER",
        help="host:port, or URL (127.0.0.1, port HEAPWATCH_TRAINER_PORT or 7777)",
    )
    where.add_argument(
        "--all", action="store_true", help="all trainers of this machine; with --prometheus, all of the job"
    )
    where.add_argument(
        "--prometheus",
        metavar="URL",
        help="read from Prometheus; TRAINER is then an instance label, and the default is all of them",
    )
    where.add_argument(
        "--job", default="trainer", help="job label of the trainers in Prometheus (%(default)s)"
    )
    how = parser.add_argument_group("sampling")
    how.add_argument(
        "--interval",
        type=above_zero(most=1e9),
        default=20.0,
        metavar="S",
        help="seconds between samples (%(default)g)",
    )
    how.add_argument("--count", type=_count, metavar="N", help="end after N samples")
    how.add_argument(
        "--auto-cleanup", action="store_true", help="request an emergency cleanup when a level is critical"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--memory-warning", type=above_zero(), metavar="MB", help="of the trainer's process")
    limits.add_argument("--memory-critical", type=above_zero(), metavar="MB")
    limits.add_argument("--bodies-warning", type=above_zero(), metavar="N", help="of all types together")
    limits.add_argument("--bodies-critical", type=above_zero(), metavar="N")
    limits.add_argument(
        "--aggressive-thresholds",
        action="store_true",
        help="use the profile walker-aggressive: memory 600 and 900 MB, bodies 300 and 500",
    )
    parser.set_defaults(run=run)
    cleaning = commands.add_parser(
        "cleanup",
        help="make a trainer clean up now",
        description="Make a trainer clean up at its next safe point, and show what was freed.",
        epilog=_CLEANUP_EPILOG,
    )
    cleaning.add_argument("trainer", metavar="NAME|URL", help="a registered trainer, or its address")
    cleaning.add_argument("--action", choices=ACTIONS, default="emergency", help="what to do (%(default)s)")
    cleaning.set_defaults(run=clean)


def run(arguments: argparse.Namespace) -> int:
    """Watch until interrupted, and return the exit code of the last sample."""
    source, thresholds = _source(arguments), _thresholds(arguments)
    token = find_token_of_user() if arguments.auto_cleanup else None
    monitor = Monitor(source, thresholds, interval=arguments.interval, token=token)
    return _watch(monitor, arguments.interval, arguments.count)


def print_lines(urls: Sequence[str], interval: float) -> int:
    """Watch these trainers by their own limits until interrupted; return the exit code of the last sample."""
    return _watch(Monitor(TrainerSource(urls), Thresholds(), interval=interval), interval, None)


def _watch(monitor: Monitor, interval: float, count: int | None) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        for sampled in itertools.count(1):
            for message in monitor.sample():
                several = len(monitor.samples) > 1 and message.instance
                name = f"[{message.instance}] " if several else ""
                line = f"{message.clock}: {name}{message.text}" if message.heading else f"   {message.text}"
                say(line, most=_LONGEST_LINE)
            if sampled == count:
                break
            time.sleep(interval)
    sys.stdout.flush()
    return EXIT_CODES[monitor.severity]


class Monitor:
    """The reporters and cleaners of every trainer of a source."""

    def __init__(
        self, source: SampleSource, thresholds: Thresholds, *, interval: float, token: str | None = None
    ) -> None:
        self._source = source
        self._thresholds = thresholds
        self._interval = interval
        self._token = token
        self._problem = ""
        self._cleaners: dict[str, Cleaner] = {}
        self.reporters: dict[str, Reporter] = {}
        self.samples: list[Sample] = []

    @property
    def severity(self) -> str:
        """The worst of all trainers; `unknown` while there are none."""
        if self._problem or not self.reporters:
            return "unknown"
        return max((reporter.severity for reporter in self.reporters.values()), key=_WORST.index)

    def sample(self) -> list[Message]:
        """Take a sample of every trainer, request cleanups if enabled, and return the messages."""
        try:
            self.samples = self._source.samples()
        except Unreachable as error:
            return self._unknown(str(error))
        gone = self.reporters.keys() - {sample.instance for sample in self.samples}
        for instance in gone:
            del self.reporters[instance]
            self._cleaners.pop(instance, None)
        messages = [
            Message(time.time(), instance, f"{instance} is not watched any more", heading=True)
            for instance in sorted(gone)
        ]
        if not self.samples:
            return messages + self._unknown("there is no trainer to watch")
        self._problem = ""
        for sample in self.samples:
            messages += self._shown(sample)
        return messages

    def _unknown(self, problem: str) -> list[Message]:
        known, self._problem = self._problem, problem
        return [] if known == problem else [Message(time.time(), "", f"UNKNOWN: {problem}", heading=True)]

    def _shown(self, sample: Sample) -> list[Message]:
        """The messages about one trainer; an invalid response does not stop the monitor of the others."""
        if sample.instance not in self.reporters:
            self.reporters[sample.instance] = Reporter(self._thresholds, interval=self._interval)
        messages: list[Message] = []
        try:
            messages.extend(self._report(sample, self.reporters[sample.instance]))
        except Exception as error:
            problem = f"its response is invalid: {describe(error)}"
            messages += self.reporters[sample.instance].report(
                replace(sample, readings=None, problem=problem)
            )
        if len(messages) > _MOST_MESSAGES:
            left_out = f"... and {len(messages) - _MOST_MESSAGES} more messages about this trainer"
            messages = [*messages[:_MOST_MESSAGES], Message(sample.time, sample.instance, left_out)]
        return messages

    def _report(self, sample: Sample, reporter: Reporter) -> Iterable[Message]:
        yield from reporter.report(sample)
        if self._token and sample.readings is not None:
            cleaner = self._cleaners.setdefault(sample.instance, Cleaner(self._token))
            lines = cleaner.clean(reporter.alerts, lambda: self._source.url_of(sample.instance))
            yield from (Message(sample.time, sample.instance, line) for line in lines)


def clean(arguments: argparse.Namespace) -> int:
    """Request a cleanup and print what it did."""
    token = find_token_of_user()
    document = {
        "action": arguments.action,
        "reason": "heapwatch cleanup",
        "request_id": uuid.uuid4().hex,
        "timeout_seconds": _WAIT_SECONDS,
    }
    try:
        url = url_of_trainer(arguments.trainer)
        _, answer = post_json(f"{url}/force_cleanup", document, token, _WAIT_SECONDS + 5)
    except Unreachable as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    say(*cleanup_lines(answer))
    return 0 if isinstance(answer, dict) and answer.get("status") == "done" else 3


def find_token_of_user() -> str:
    """The token that the environment names, else that of the running stack; UsageError without one."""
    try:
        stack = choose().stack
        token = find_token() or (token_of(stack) if stack is not None else None)
    except (OSError, ValueError) as error:
        raise UsageError(f"the token cannot be read: {error}") from None
    if token is None:
        raise UsageError(
            "a cleanup needs the trainer's token: no stack of this user runs, so set HEAPWATCH_TOKEN or "
            "HEAPWATCH_TOKEN_FILE"
        )
    return token


class Cleaner:
    """Requests at most one cleanup of a trainer in each cooldown, and none if a level stays critical."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._clock = clock
        self._asked_at = float("-inf")
        self._asked_for: frozenset[Component] = frozenset()
        self._unhelped: frozenset[Component] = frozenset()
        self._pending: str | None = None
        self._waiting_reported = False

    def clean(self, alerts: Iterable[ExceededLimit], url_of: Callable[[], str]) -> list[str]:
        """Request an emergency cleanup if these alerts need one, and return the lines about it."""
        critical = {
            Component(alert.resource, alert.component): alert
            for alert in alerts
            if alert.kind == "threshold" and alert.severity != "warning" and alert.resource in _CLEANED
        }
        self._unhelped &= critical.keys()
        left = COOLDOWN_SECONDS - (self._clock() - self._asked_at)
        if left > 0 and self._pending is None:
            return self._waiting(critical, left)
        self._waiting_reported = False
        lines = self._without_effect(critical) if self._pending is None else []
        wanted = critical.keys() - self._unhelped
        if not wanted:
            return lines
        reasons = ", ".join(described(critical[component]) for component in sorted(wanted))
        return lines + self._ask(frozenset(wanted), reasons, url_of)

    def _waiting(self, critical: dict[Component, ExceededLimit], left: float) -> list[str]:
        """Report what is critical during the cooldown, once."""
        if self._waiting_reported or not critical.keys() - self._unhelped:
            return []
        self._waiting_reported = True
        names = ", ".join(named(component) for component in sorted(critical.keys() - self._unhelped))
        return [f"COOLDOWN: {names} still critical; the next cleanup is at least {left:.0f} s away"]

    def _without_effect(self, critical: dict[Component, ExceededLimit]) -> list[str]:
        still = (self._asked_for & critical.keys()) - self._unhelped
        self._asked_for = frozenset()
        self._unhelped |= still
        return [
            f"CLEANUP DID NOT HELP: {described(critical[component])}; not repeated until it falls below"
            for component in sorted(still)
        ]

    def _ask(self, wanted: frozenset[Component], reasons: str, url_of: Callable[[], str]) -> list[str]:
        request_id = self._pending or uuid.uuid4().hex
        first = [] if self._pending else ["EMERGENCY: triggering an emergency cleanup"]
        self._asked_at = self._clock()
        document = {
            "action": "emergency",
            "reason": f"heapwatch monitor: {reasons}"[:1000],
            "request_id": request_id,
            "timeout_seconds": _MONITOR_WAIT_SECONDS,
        }
        if len(wanted) == 1:
            (only,) = wanted
            document |= {"resource": only.resource, "component": only.name}
        try:
            status, answer = post_json(
                f"{url_of()}/force_cleanup", document, self._token, _MONITOR_WAIT_SECONDS + 5
            )
        except Unreachable as error:
            return [*first, f"CLEANUP FAILED: {error}"]
        self._pending = request_id if status == 202 else None
        self._asked_for = wanted
        return first + cleanup_lines(answer)


def cleanup_lines(answer: Any) -> list[str]:
    """Return what a cleanup did: bytes freed, then each level before and after; bounded in length."""
    answer = mapping(answer)
    if answer.get("status") != "done":
        return [f"Cleanup pending: {plain(answer.get('detail', 'no safe point yet'), _LONGEST_TEXT)}"]
    freed = number(mapping(answer.get("freed")).get("resident_memory_bytes"))
    result = f"{freed / 1e6:.1f}MB freed" if freed is not None else "freed memory not known"
    took = number(answer.get("duration_seconds"))
    duration = "" if took is None else f" in {took:.1f} s"
    action = plain(answer.get("action"), _LONGEST_TEXT).capitalize()
    lines = [f"{action} cleanup completed{duration}: {result}"]
    before, after = _flat(mapping(answer.get("before"))), _flat(mapping(answer.get("after")))
    for name in before.keys() & after.keys() - {"resident_memory_bytes"}:
        if before[name] != after[name]:
            change = after[name] - before[name]
            lines.append(f"   {title(name)}: {before[name]:.0f} -> {after[name]:.0f} ({change:+.0f})")
    lines[1:] = sorted(lines[1:])[:_MOST_LINES]
    errors = answer.get("errors")
    shown = errors[:_MOST_LINES] if isinstance(errors, list) else []
    return [*lines, *(f"   error: {plain(error, _LONGEST_TEXT)}" for error in shown)]


def _flat(levels: dict[str, Any]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in levels.items():
        inner: Iterable[tuple[str, Any]] = value.items() if isinstance(value, dict) else [(name, value)]
        for key, level in inner:
            if (known := number(level)) is not None:
                flat[plain(key, _LONGEST_TEXT)] = known
    return flat


def _source(arguments: argparse.Namespace) -> SampleSource:
    if arguments.prometheus:
        return PrometheusSource(base_url(arguments.prometheus), arguments.job, arguments.trainers)
    if arguments.all:
        if arguments.trainers:
            raise UsageError("give either trainers or --all")
        if not (found := registered_trainers()):
            raise UsageError(none_registered())
        return TrainerSource(found)
    port = os.environ.get("HEAPWATCH_TRAINER_PORT") or "7777"
    return TrainerSource([base_url(trainer) for trainer in arguments.trainers or [f"127.0.0.1:{port}"]])


def _thresholds(arguments: argparse.Namespace) -> Thresholds:
    memory = {"warning": arguments.memory_warning, "critical": arguments.memory_critical}
    bodies = {"warning": arguments.bodies_warning, "critical": arguments.bodies_critical}
    given = {
        MEMORY: {severity: limit * 1e6 for severity, limit in memory.items() if limit is not None},
        BODIES: {severity: limit for severity, limit in bodies.items() if limit is not None},
    }
    for name, limits in (("memory", memory), ("bodies", bodies)):
        if None not in limits.values() and limits["warning"] >= limits["critical"]:
            raise UsageError(f"--{name}-warning must be below --{name}-critical")
    return Thresholds("walker-aggressive" if arguments.aggressive_thresholds else None, given)


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of samples; allowed: 1 or more")
    return value
