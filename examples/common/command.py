"""What every example has: its command line, `python -m examples.NAME [--leak NAME=RATE] …`, and its rate."""

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol, TypedDict

import torch

import heapwatch
from examples.common.leaks import leak_file, parse, write
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, DEFAULT_INTERVAL


class Served(TypedDict):
    """Arguments of `heapwatch.start` that come from the command line."""

    port: int
    host: str
    interval: float
    budget: float
    port_search: bool


def profile(own: str) -> str:
    """The profile of limits that the environment asks for, else this example's own."""
    asked = os.environ.get("HEAPWATCH_PROFILE", "default")
    return own if asked in ("", "default") else asked


class Rate:
    """At most so many steps per second, so that the machine stays usable; None for no limit."""

    def __init__(self, steps_per_second: float | None) -> None:
        self._seconds = 1 / steps_per_second if steps_per_second else 0.0
        self._next = time.monotonic()
        self._steps = 0

    def clock(self) -> float:
        """Seconds that the steps so far take at this rate, or of the real clock where there is none.

        What is due by this clock comes to the same for an epoch on any machine.
        """
        return self._steps * self._seconds if self._seconds else time.monotonic()

    def wait(self) -> None:
        """Sleep until the next step is due; time lost is not made up for."""
        if not self._seconds:
            return
        self._steps += 1
        now = time.monotonic()
        self._next = max(self._next + self._seconds, now)
        if self._next > now:
            time.sleep(self._next - now)


class Trainer(Protocol):
    """What an example has to be."""

    def watched(self, served: "Served") -> AbstractContextManager[heapwatch.Watch]:
        """Have it watched for as long as the context lasts."""

    def train(self, watch: heapwatch.Watch, steps: int | None) -> None:
        """Train for `steps` steps, or for ever."""


def run(
    name: str,
    leaks: Mapping[str, str],
    rate: float,
    make: Callable[[argparse.Namespace], Trainer],
    flags: Mapping[str, str] | None = None,
) -> int:
    """Parse the command line and train until told to stop; returns the exit status.

    Args:
        name: the example's name.
        leaks: name of each leak -> what one unit of it is.
        rate: steps per second unless the command line says otherwise.
        make: called with the arguments, of which `rate` is None for as fast as it goes.
        flags: options of its own -> their help.

    """
    parser = _parser(name, leaks, rate)
    for flag, help_text in (flags or {}).items():
        parser.add_argument(flag, action="store_true", help=help_text)
    chosen = parser.parse_args()
    chosen.rate = chosen.rate or None
    logging.basicConfig(format="%(message)s", stream=sys.stdout)
    logging.getLogger("heapwatch").setLevel(logging.INFO)  # memory reports
    try:
        write(leak_file(name), parse(chosen.leak, leaks))
    except ValueError as problem:
        parser.error(str(problem))
    torch.set_num_threads(1)  # these networks are too small to gain from more
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    served = Served(
        port=chosen.port,
        host=chosen.host,
        interval=chosen.interval,
        # A sample may cost what it costs by default, however often it is taken.
        budget=DEFAULT_BUDGET * DEFAULT_INTERVAL / chosen.interval,
        port_search="HEAPWATCH_TRAINER_PORT" not in os.environ,  # a stack looks for it there and nowhere else
    )
    with ExitStack() as running:
        try:
            trainer = make(chosen)
            watch = running.enter_context(trainer.watched(served))
        except ValueError as problem:
            parser.error(str(problem))
        if chosen.record:
            watch.record(chosen.record)  # after the declarations, so that the baseline has their levels
        served_at = f"metrics at http://{chosen.host}:{watch.port}/metrics"
        where = "nothing is served" if watch.port is None else served_at
        print(f"{name} trains; {where}", flush=True)
        try:
            trainer.train(watch, chosen.steps)
        except KeyboardInterrupt:
            print(f"{name} stopped", flush=True)
    return 0


def _parser(name: str, leaks: Mapping[str, str], rate: float) -> argparse.ArgumentParser:
    # Its module says what it trains.
    about = sys.modules["__main__"].__doc__
    options = argparse.ArgumentParser(prog=f"python -m examples.{name}", description=about)
    port = int(os.environ.get("HEAPWATCH_TRAINER_PORT", "7777"))
    options.add_argument("--port", type=int, default=port, help="where to serve (%(default)d)")
    host = os.environ.get("HEAPWATCH_BIND", "127.0.0.1")
    options.add_argument("--host", default=host, help="address to listen on (%(default)s)")
    fastest = "steps per second at most; 0: as fast as it goes (%(default)g)"
    options.add_argument("--rate", type=float, default=rate, help=fastest)
    options.add_argument("--steps", type=int, help="stop after so many steps (never)")
    least = "least seconds between samples of live objects (%(default)g)"
    options.add_argument("--interval", type=float, default=5.0, help=least)
    options.add_argument("--seed", type=int, default=0, help="of the random numbers (0)")
    units = "; ".join(f"{leak} ({unit})" for leak, unit in leaks.items())
    on = f"start with this leak on, units per minute: {units}"
    options.add_argument("--leak", action="append", default=[], metavar="NAME=RATE", help=on)
    options.add_argument("--record", metavar="FILE", help="write what `heapwatch report FILE` reads")
    return options
