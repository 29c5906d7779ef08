"""`heapwatch monitor`: prints the state of a trainer, and requests cleanups when a level is critical."""

from __future__ import annotations

import argparse
import itertools
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from heapwatch.cli import above_zero
from heapwatch.cli.cleanup import Cleaner, find_token_of_user
from heapwatch.cli.reporter import Reporter, indented
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import base_url, get_json, understood
from heapwatch.judge.component import MEMORY
from heapwatch.judge.limits import BODIES, Limits, profile_named
from heapwatch.text.terminal import say

EXIT_CODES = {"ok": 0, "warning": 1, "critical": 2, "emergency": 2, "unknown": 3}
_LONGEST_LINE = 2000
_MOST_BYTES = 4 * 2**20

_EPILOG = """
exit codes, of the last sample:
  0   every level and growth rate is below its limit; healthy, warm-up, filling, too early or growing
  1   a warning: a limit is exceeded
  2   a critical or emergency limit is exceeded, leak or will not fit, or training is stalled
  3   the trainer does not respond
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
        help="watch a trainer in the terminal",
        description="Watch a trainer in the terminal.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "trainer",
        nargs="?",
        metavar="TRAINER",
        help="host:port, or URL (127.0.0.1, port HEAPWATCH_TRAINER_PORT or 7777)",
    )
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
    port = os.environ.get("HEAPWATCH_TRAINER_PORT") or "7777"
    url, reporter = base_url(arguments.trainer or f"127.0.0.1:{port}"), Reporter(_limits(arguments))
    cleaner = Cleaner(find_token_of_user()) if arguments.auto_cleanup else None
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt):
        for count in itertools.count(1):
            say(*sample(url, reporter, cleaner), most=_LONGEST_LINE)
            if count == arguments.count:
                break
            time.sleep(arguments.interval)
    sys.stdout.flush()
    return EXIT_CODES[reporter.severity]


def sample(url: str, reporter: Reporter, cleaner: Cleaner | None) -> list[str]:
    """Read the trainer, request a cleanup if `cleaner` finds one necessary, and return the lines."""
    now = time.time()
    try:
        status = get_json(f"{url}/performance_status", _MOST_BYTES)
        with understood(url):
            lines = reporter.report(now, status)
    except Unreachable as error:
        return reporter.report_problem(now, str(error))
    if cleaner is not None:
        lines += map(indented, cleaner.clean(reporter.alerts, url))
    return lines


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
