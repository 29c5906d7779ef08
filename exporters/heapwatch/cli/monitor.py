"""`heapwatch monitor`: one line per sample, alerts when they change, cleanups with --auto-cleanup."""

from __future__ import annotations

import argparse
import itertools
import math
import os
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from heapwatch.analysis.limits import BODIES
from heapwatch.analysis.readings import MEMORY
from heapwatch.cli.cleanup import Cleaner, find_token_of_user
from heapwatch.cli.reporter import Message, Reporter, Thresholds
from heapwatch.cli.sources import (
    PrometheusSource,
    Sample,
    SampleSource,
    TrainerSource,
    none_registered,
    registered_trainers,
)
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url
from heapwatch.runtime.failures import describe
from heapwatch.runtime.plain_text import say

EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "emergency": 2, "unknown": 3}
_MOST_MESSAGES = 100  # about one sample of one trainer
_LONGEST_LINE = 2000
_WORST = ("ok", "warning", "unknown", "critical", "emergency")

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


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
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
        "--interval", type=positive, default=20.0, metavar="S", help="seconds between samples (%(default)g)"
    )
    how.add_argument("--count", type=_count, metavar="N", help="end after N samples")
    how.add_argument(
        "--auto-cleanup", action="store_true", help="request an emergency cleanup when a level is critical"
    )
    limits = parser.add_argument_group("limits")
    limits.add_argument("--memory-warning", type=positive, metavar="MB", help="of the trainer's process")
    limits.add_argument("--memory-critical", type=positive, metavar="MB")
    limits.add_argument("--bodies-warning", type=positive, metavar="N", help="of all types together")
    limits.add_argument("--bodies-critical", type=positive, metavar="N")
    limits.add_argument(
        "--aggressive-thresholds",
        action="store_true",
        help="use the profile walker-aggressive: memory 600 and 900 MB, bodies 300 and 500",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Watch until interrupted, and return the exit code of the last sample.

    Raises:
        UsageError: the arguments contradict each other, or something they need is missing.

    """
    source, thresholds = _source(arguments), _thresholds(arguments)
    token = find_token_of_user() if arguments.auto_cleanup else None
    monitor = Monitor(source, thresholds, interval=arguments.interval, token=token)
    return _watch(monitor, arguments.interval, arguments.count)


def print_lines(urls: Sequence[str], interval: float) -> int:
    """Watch these trainers by their own limits until interrupted; return the exit code of the last sample."""
    return _watch(Monitor(TrainerSource(urls), Thresholds(None, {}), interval=interval), interval, None)


def _watch(monitor: Monitor, interval: float, count: int | None) -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        for sampled in itertools.count(1):
            _show(monitor.sample(), several=len(monitor.samples) > 1)
            if sampled == count:
                break
            time.sleep(interval)
    sys.stdout.flush()
    return EXIT_CODES[monitor.severity]


def _show(messages: Iterable[Message], *, several: bool) -> None:
    """Print plain lines, each at once."""
    for message in messages:
        name = f"[{message.instance}] " if several and message.instance else ""
        line = f"{message.clock}: {name}{message.text}" if message.heading else f"   {message.text}"
        say(line, most=_LONGEST_LINE)


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


def positive(text: str) -> float:
    """A number of a command line.

    Raises:
        argparse.ArgumentTypeError: it is not above 0.

    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of samples; allowed: 1 or more")
    return value
