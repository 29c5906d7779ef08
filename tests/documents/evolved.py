"""The example erl_trading in this process, and what is alive at its checkpoints by a count of our own."""

import gc
import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
import torch

from examples.common.command import Served
from examples.common.leaks import leak_file, write
from examples.erl_trading.agent import DDPGAgent, ReplayBuffer
from examples.erl_trading.market import EPISODE, TradingEnvironment
from examples.erl_trading.trainer import POPULATION, ErlTrainer
from heapwatch.recording.checkpoints import Checkpoint
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, DEFAULT_INTERVAL
from tests.documents.example import own_state

SERVED = Served(port=0, host="127.0.0.1", interval=DEFAULT_INTERVAL, budget=DEFAULT_BUDGET, port_search=False)
STEPS = POPULATION * EPISODE  # of a generation
RATE = 1e5  # steps a second, more than there are; leaks are due by it


@dataclass
class Evolved:
    """A run of the example in this process.

    Attributes:
        points: its checkpoints, each with what was alive then by a count of our own.
        lines: what the library logged.
        printed: what the example printed.
        alive: by a count of our own, when it ended.

    """

    points: list[tuple[Checkpoint, dict[str, int]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    printed: str = ""
    alive: dict[str, int] = field(default_factory=dict)

    def reports(self) -> dict[int, str]:
        """The report of each generation, with the finding that follows it."""
        found: dict[int, str] = {}
        for line in self.lines:
            if title := re.search(r"(?m)^Memory Report - Generation (\d+)$", line):
                assert int(title[1]) not in found
                found[int(title[1])] = line
            elif line.startswith("LEAK FOUND:"):
                found[max(found)] += line
        return found

    def findings(self) -> dict[int, list[str]]:
        """The lines of what was found in each generation, without the growth of memory."""
        return {
            number: [line for line in finding.splitlines()[1:] if not line.startswith("Growth:")]
            for number, report in self.reports().items()
            for finding in ["LEAK FOUND:".join(report.partition("LEAK FOUND:")[1:])]
        }

    def warnings(self, name: str) -> list[str]:
        """Those about a class."""
        return [line for line in self.lines if line.startswith(f"{name}: ")]


@cache
def evolved(generations: float, *, ends: bool = True, arrays: bool = False, **a_generation: int) -> Evolved:
    """Have the example train here for so many generations, with so many units of leaks in each.

    Args:
        generations: so many of them.
        ends: otherwise it is ended by SystemExit as by SIGTERM, in the middle of a generation.
        arrays: count arrays, too, and give the library the time to do so at each checkpoint.
        a_generation: units of each leak.

    """
    run = Evolved()
    with (
        own_state(),
        pytest.MonkeyPatch.context() as patch,
        said_by("heapwatch") as run.lines,
        redirect_stdout(io.StringIO()) as printed,
    ):
        # On a busy machine a count may take several times its usual CPU time.
        patch.setattr("heapwatch.exporter.CHECKPOINT_SECONDS", 600.0 if arrays else 1.0)
        minutes = STEPS / RATE / 60
        write(leak_file("erl_trading"), {name: units / minutes for name, units in a_generation.items()})
        trainer = ErlTrainer(rate=RATE)
        wait = trainer._rate.wait

        def waited() -> None:
            wait()
            if not ends and trainer.steps >= generations * STEPS:
                raise SystemExit

        trainer._rate.wait = waited  # type: ignore[method-assign]
        with trainer.watched(SERVED) as watch:
            take = watch.checkpoint

            def checkpoint(label: str) -> Checkpoint | None:
                gc.disable()  # or what it collects between the two counts makes them differ
                point = take(label)
                if point is not None:
                    run.points.append((point, own_count(arrays)))
                gc.enable()
                return point

            watch.checkpoint = checkpoint  # type: ignore[method-assign]
            try:
                trainer.train(watch, round(generations * STEPS))
            except SystemExit:
                assert not ends
            run.alive = own_count(arrays)
        run.printed = printed.getvalue()
    return run


def own_count(arrays: bool) -> dict[str, int]:
    """Live instances as the collector lists them, and `arrays` as all that is listed refers to them."""
    listed = gc.get_objects()
    counted = {
        cls.__name__: sum(issubclass(type(one), cls) for one in listed)
        for cls in (TradingEnvironment, DDPGAgent, ReplayBuffer, torch.Tensor, mpl.figure.Figure)
    }
    if not arrays:
        return counted
    seen: dict[int, object] = {}
    waiting: list[object] = listed
    while waiting:
        untracked = [one for one in gc.get_referents(*waiting) if not gc.is_tracked(one)]
        bases = [one.base for one in untracked if isinstance(one, np.ndarray) and one.base is not None]
        waiting = [
            one for one in (*untracked, *bases) if id(one) not in seen and not isinstance(one, int | str)
        ]
        seen |= {id(one): one for one in waiting}
    return counted | {"ndarray": sum(isinstance(one, np.ndarray) for one in seen.values())}


@contextmanager
def said_by(name: str) -> Iterator[list[str]]:
    """What a logger says meanwhile."""
    lines: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger(name)
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
