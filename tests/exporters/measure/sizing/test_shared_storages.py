"""Buffers whose items share memory: the error covers the truth."""

import random
import sys
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from heapwatch.collectors.buffers import BufferCollector, BufferSources
from heapwatch.collectors.readings import Readings
from heapwatch.measure.sizing.replay_buffers import contents_of
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.sources import Source

LARGE = 20_000  # numbers of a state, of which the storage is asked for alone


class Step(NamedTuple):
    state: Any
    action: int
    reward: float
    next_state: Any


def counted(*held: Any) -> int:
    """Bytes of everything that objects hold, by visiting one after the other, each storage once."""
    seen: set[int] = set()
    total, waiting = 0, list(held)
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        total += sys.getsizeof(one) - (one.nbytes if isinstance(one, np.ndarray) and one.flags.owndata else 0)
        if isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            total += 0 if storage.data_ptr() in seen else storage.nbytes()
            seen.add(storage.data_ptr())
        elif isinstance(one, np.ndarray):
            owner = one if one.base is None else one.base
            if one.base is None:
                total += one.nbytes
            else:
                waiting.append(owner)
        elif isinstance(one, dict):
            waiting += one.values()  # names are not among what a dict refers to, for the collector
        elif isinstance(one, (list, tuple, deque)):
            waiting += one
    return total


def state(numbers: int = LARGE) -> torch.Tensor:
    return torch.empty(numbers)


def steps(length: int, numbers: int = LARGE, of_episode: int = 10) -> list[Step]:
    """Each next state is the state of the next step, as another tensor, except at the end of an episode."""
    made, now = [], state(numbers)
    for step in range(length):
        following = state(numbers)
        made.append(Step(now.detach(), step % 5, float(step), following.detach()))
        now = state(numbers) if step % of_episode == of_episode - 1 else following
    return made


def ring(length: int) -> list[Step]:
    """A list in which the newest replace the oldest in place."""
    made = steps(length + length // 3)
    return [*made[length:], *made[length // 3 : length]]


def in_arrays(length: int) -> list[Step]:
    states = [np.zeros(100) for _ in range(length + 1)]
    return [Step(states[step], step + 1000, float(step), states[step + 1]) for step in range(length)]


def far_apart(length: int) -> list[Any]:
    half = [state() for _ in range(length // 2)]
    return [(one.detach(), at + 1000) for at, one in enumerate([*half, *half])]


def of_a_pool(length: int) -> list[Any]:
    generator = random.Random(7)
    pool = [state(generator.randrange(100, LARGE)) for _ in range(40)]
    return [(generator.choice(pool), at + 1000) for at in range(length)]


def pairs_of_views(length: int) -> list[Any]:
    return [(whole[:10], whole[10:]) for whole in (state() for _ in range(length))]


def of_many_sizes(length: int) -> list[Any]:
    generator = random.Random(3)
    return [state(generator.randrange(10, LARGE)) for _ in range(length)]


BUFFERS: dict[str, Callable[[int], Any]] = {
    "steps": lambda length: deque(steps(length), maxlen=length),
    "steps of small states": lambda length: steps(length, 100),
    "steps without an end": lambda length: steps(length, of_episode=10**9),
    "steps of long episodes": lambda length: steps(length, of_episode=97),
    "steps in dicts": lambda length: [one._asdict() for one in steps(length)],
    "a ring": ring,
    "arrays": in_arrays,
    "far apart": far_apart,
    "a pool": of_a_pool,
    "pairs of views": pairs_of_views,
    "many sizes": of_many_sizes,
    "alike": lambda length: [state() for _ in range(length)],
}


@pytest.mark.parametrize("make", BUFFERS.values(), ids=BUFFERS)
@pytest.mark.parametrize("length", [20, 454, 1000, 3000])
def test_the_error_covers_the_truth(make: Callable[[int], Any], length: int) -> None:
    held = make(length)
    true = counted(held)
    size, _ = contents_of(held).size()
    assert abs(size.bytes - true) <= size.error_bytes + 0.001 * true, (
        size.bytes / true,
        size.error_bytes / true,
    )
    assert size.error_bytes < 1.4 * true


def test_a_buffer_that_grew_since_it_was_measured_has_the_items_of_now(failures: Failures) -> None:
    replay: deque[Any] = deque([state() for _ in range(300)], maxlen=1000)
    buffers = BufferCollector(failures, interval=5.0)
    buffers.measure("replay", BufferSources(Source.of(replay)))

    def found() -> tuple[float, float, float]:
        now = Readings([*buffers.collect(), *buffers.sizes.collect()])
        values = [
            now.value(f"trainer_buffer_{name}", buffer="replay") for name in ("items", "bytes", "error_bytes")
        ]
        items, nbytes, error = (value for value in values if value is not None)
        return items, nbytes, error

    buffers.sample()
    buffers.sizes.sample()
    assert found() == (300, pytest.approx(counted(replay), rel=0.001), pytest.approx(0, abs=1e6))
    replay.extend([state() for _ in range(150)])
    buffers.sample()
    items, nbytes, error = found()
    assert items == 450
    assert nbytes == pytest.approx(counted(replay), rel=0.02)
    assert abs(nbytes - counted(replay)) <= error
    buffers.sizes.sample()
    assert found() == (450, pytest.approx(counted(replay), rel=0.001), pytest.approx(0, abs=2e6))
