"""`heapwatch monitor`: prints the state of trainers, and requests cleanups when a level is critical."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from heapwatch.cli import above_zero
from heapwatch.cli.cleanup import Cleaner, find_token_of_user
from heapwatch.cli.reporter import Message, Reporter, Sample
from heapwatch.cli.sources import none_registered, read_all, registered_trainers
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url, get_json, understood
from heapwatch.judge.component import MEMORY
from heapwatch.judge.limits import BODIES, Limits, profile_named
from heapwatch.text.terminal import say

EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "emergency": 2, "unknown": 3}
_WORST = ("ok", "warning", "unknown", "critical", "emergency")
_LONGEST_LINE = 2000
_MOST_BYTES = 4 * 2**20

_EPILOG = """
exit codes, of the last sample, worst trainer first:
  0   every level and growth rate is below its limit; healthy, warm-up, filling, too early or growing
  1   a warning: a limit is exceeded
  2   a critical or emergency limit is exceeded, leak or will not fit, or training is stalled
  3   a trainer does not respond
  64  the command line is wrong

Limits are those that the trainer declares, else those of its profile; options replace those of memory and
of bodies. Every trainer has limits of memory with workers: 85 % (warning), 93 % (critical) and 97 %
(emergency) of what is available. MB are 1e6 bytes. The token of --auto-cleanup is HEAPWATCH_TOKEN, else the
content of HEAPWATCH_TOKEN_FILE, else that of the running stack.

examples:
  heapwatch monitor
  heapwatch monitor --auto-cleanup --aggressive-thresholds
  heapwatch monitor --count 1 127.0.0.1:7777 || echo "not healthy"
"""


def add_parser(commands: Any) -> None:
    """Add the subcommands."""
    parser = commands.add_parser(
        "monitor",
        help="watch one trainer or all, in the terminal",
        description="Watch one trainer or all, in the terminal.",
        epilog=_EPILOG,
    )
    trainers = parser.add_argument_group("trainers")
    trainers.add_argument(
        "trainers",
        nargs="*",
        metavar="TRAINER",
        help="host:port, or URL (127.0.0.1, port HEAPWATCH_TRAINER_PORT or 7777)",
    )
    trainers.add_argument("--all", action="store_true", help="all trainers of this machine")
    sampling = parser.add_argument_group("sampling")
    sampling.add_argument(
        "--interval",
        type=above_zero(most=1e9),
        default=20.0,
        metavar="S",
        help="seconds between samples (%(default)g)",
    )
    sampling.add_argument("--count", type=_count, metavar="N", help="end after N samples")
    sampling.add_argument(
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
        help="limits of the profile walker-aggressive: memory 600 and 900 MB, bodies 300 and 500",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Watch until interrupted, and return the exit code of the last sample."""
    urls, limits = _urls(arguments), _limits(arguments)
    token = find_token_of_user() if arguments.auto_cleanup else None
    monitor = Monitor(urls, limits, token=token)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        for count in itertools.count(1):
            for message in monitor.sample():
                name = f"[{message.instance}] " if len(monitor.reporters) > 1 else ""
                line = f"{message.clock}: {name}{message.text}" if message.heading else f"   {message.text}"
                say(line, most=_LONGEST_LINE)
            if count == arguments.count:
                break
            time.sleep(arguments.interval)
    sys.stdout.flush()
    return EXIT_CODES[monitor.severity]


class Monitor:
    """Samples several trainers; with a `token` it requests cleanups."""

    def __init__(self, urls: Sequence[str], limits: Limits, *, token: str | None = None) -> None:
        self._urls = {url.partition("://")[2]: url for url in urls}
        self._cleaners = {} if token is None else {instance: Cleaner(token) for instance in self._urls}
        self.reporters = {instance: Reporter(limits) for instance in self._urls}

    @property
    def severity(self) -> str:
        """The worst severity of all trainers."""
        return max((reporter.severity for reporter in self.reporters.values()), key=_WORST.index)

    def sample(self) -> list[Message]:
        """Take a sample of every trainer, request cleanups if enabled, and return the messages."""
        samples = read_all([*self._urls], self._read)
        return [message for sample in samples for message in self._messages(sample)]

    def _read(self, instance: str) -> Sample:
        try:
            status = get_json(f"{self._urls[instance]}/performance_status", _MOST_BYTES)
        except Unreachable as error:
            return Sample(instance, time.time(), problem=str(error))
        return Sample(instance, time.time(), status)

    def _messages(self, sample: Sample) -> list[Message]:
        reporter, url = self.reporters[sample.instance], self._urls[sample.instance]
        try:
            with understood(url):
                messages = reporter.report(sample)
        except Unreachable as error:
            return reporter.report(replace(sample, status=None, problem=str(error)))
        cleaner = self._cleaners.get(sample.instance)
        if cleaner is not None and sample.status is not None:
            lines = cleaner.clean(reporter.alerts, url)
            messages += [Message(sample.time, sample.instance, line) for line in lines]
        return messages


def _urls(arguments: argparse.Namespace) -> list[str]:
    if arguments.all:
        if arguments.trainers:
            raise UsageError("give either trainers or --all")
        if not (urls := registered_trainers()):
            raise UsageError(none_registered())
        return urls
    port = os.environ.get("HEAPWATCH_TRAINER_PORT") or "7777"
    return [base_url(trainer) for trainer in arguments.trainers or [f"127.0.0.1:{port}"]]


def _limits(arguments: argparse.Namespace) -> Limits:
    memory = {"warning": arguments.memory_warning, "critical": arguments.memory_critical}
    bodies = {"warning": arguments.bodies_warning, "critical": arguments.bodies_critical}
    levels = profile_named("walker-aggressive").levels if arguments.aggressive_thresholds else {}
    replaced = {component: limits for component, limits in levels.items() if component in (MEMORY, BODIES)}
    for component, limits, unit in ((MEMORY, memory, 1e6), (BODIES, bodies, 1.0)):
        if None not in limits.values() and limits["warning"] >= limits["critical"]:
            name = component.resource
            raise UsageError(f"--{name}-warning must be below --{name}-critical")
        option_limits = {severity: limit * unit for severity, limit in limits.items() if limit is not None}
        if option_limits:
            replaced[component] = {**replaced.get(component, {}), **option_limits}
    return replaced


def _count(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of samples; allowed: 1 or more")
    return value
