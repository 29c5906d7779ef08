"""Series of one trainer at evaluations: its levels, those of its process, the growth that they explain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from heapwatch.collectors.readings import LEVEL_SERIES, MEMORY, Component
from heapwatch.judge.rates import (
    STEP_SECONDS,
    Samples,
    Sums,
    Values,
    at,
    before,
    bridged,
    evaluations,
    highest,
    lowest,
    steps,
)

# Metric -> the resource whose level it is, and the labels that name the component.
LEVELS = {
    series: (resource, (label,))
    for resource, (series, label) in LEVEL_SERIES.items()
    if resource != "gpu_memory"  # of which more than one part may leak
} | {
    "trainer_gpu_memory_allocated_bytes": ("gpu_memory", ("device",)),
    "trainer_gpu_memory_part_bytes": ("gpu_memory", ("device", "part")),
}
# Parts of a GPU's memory that are in use, apart from torch's, which its allocator reports.
_PARTS_IN_USE = ("jax_in_use", "other_pools", "workers", "other_processes", "unattributed")
WORKERS = Component("memory", "worker")
_CAPACITIES = ("trainer_buffer_capacity_items", "trainer_buffer_capacity_bytes")
_COLLECTORS = {"buffers": "buffer", "sizes": "object_size"}
_CYCLES = ("episode", "epoch", "generation")
# Every metric that a verdict depends on.
OBSERVED = (
    *LEVELS,
    *_CAPACITIES,
    "trainer_buffer_bytes",
    "trainer_buffer_graph_tensors",
    "trainer_event_list_capacity_items",
    "trainer_process_unique_memory_bytes",
    "trainer_process_virtual_memory_bytes",
    "trainer_processes",
    "trainer_jax_compiled_programs",
    "trainer_allocator_retained_bytes",
    "trainer_progress_total",
    "trainer_cleanups_total",
    "trainer_exporter_sample_age_seconds",
    "trainer_named_leaks_growth_bytes_per_minute",
    "trainer_named_leaks_share_ratio",
    "process_start_time_seconds",
)

MATURE_MINUTES, MATURE_CYCLES, MATURE_SECONDS = 24, 2, 2700
YOUNG_CYCLES, YOUNG_EVALUATIONS = 4, 11
RATE_RATIO_LIMITS = (0.5, 2.0)  # a larger change of speed is cut to these
RESET_EVALUATIONS = steps(4)
BUFFER_TOLERANCE, TOLERANCE = 0.25, 1.25
TOLERANCE_MINUTES = (16, 6)
GAP_MINUTES = 10  # longest gap without samples that is bridged


class Series(NamedTuple):
    """A metric and its labels, sorted by name, without job and instance."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    def label(self, name: str) -> str:
        """The value of a label; empty when there is none."""
        return dict(self.labels).get(name, "")


@dataclass(frozen=True)
class Process:
    """Series of a trainer's process, a value for each evaluation; None for a series that it does not expose.

    Attributes:
        start: start time of the process, in seconds on the clock of `time`.
        time: times of the evaluations in seconds.
        cycles: number of ended generations, else of epochs, else of episodes.
        steps: number of training steps.
        cleanups: number of emergency cleanups and of requested cleanups.
        bounded: bytes in buffers that have a bound.
        virtual: virtual memory of the trainer's process, in bytes.
        retained: freed memory that malloc keeps, in bytes.
        sample_age: seconds since the last sample, by resource.
        named: growth in bytes per minute of the leaks that the trainer's explainer names; 0 if it names none.
        named_share: share of these in the growth of the process.

    """

    start: Values
    time: Sequence[float]
    cycles: Values | None = None
    steps: Values | None = None
    cleanups: Values | None = None
    bounded: Values | None = None
    virtual: Values | None = None
    retained: Values | None = None
    sample_age: Mapping[str, Values] | None = None
    named: Values | None = None
    named_share: Values | None = None


class Observed(NamedTuple):
    """The input of the verdicts.

    Attributes:
        process: series of the process.
        levels: every watched level.
        bounded: number of items and capacity of each container that has a capacity.
        graphs: number of tensors with autograd graphs, and number of items, of each buffer.

    """

    process: Process
    levels: dict[Component, Values]
    bounded: dict[Component, tuple[Values, Values]]
    graphs: dict[Component, tuple[Values, Values]]


def observed(series: Mapping[Series, Samples], start: float, many: int) -> Observed:
    """Sample a trainer's series at `many` evaluations, every 30 seconds from `start` (seconds)."""
    seen = {one: evaluations(samples, start, many) for one, samples in series.items()}
    with_bound = {Component("buffer", one.label("buffer")) for one in seen if one.name in _CAPACITIES}
    held = _together(
        values
        for one, values in _named(seen, "trainer_buffer_bytes")
        if Component("buffer", one.label("buffer")) in with_bound
    )
    lists = _named(seen, "trainer_event_list_capacity_items")
    with_bound |= {Component("events", one.label("list")) for one, _ in lists}
    levels = _levels(seen, with_bound, held)
    process = Process(
        start=_first(seen, "process_start_time_seconds") or _zeros(levels.get(MEMORY), many),
        time=[start + index * STEP_SECONDS for index in range(many)],
        cycles=_slowest(
            values for one, values in _named(seen, "trainer_progress_total") if one.label("unit") in _CYCLES
        ),
        steps=_first(seen, "trainer_progress_total", unit="step"),
        cleanups=_together(
            values
            for one, values in _named(seen, "trainer_cleanups_total")
            if one.label("action") == "emergency" or one.label("trigger") == "http"
        ),
        bounded=held,
        virtual=_first(seen, "trainer_process_virtual_memory_bytes", role="trainer"),
        retained=_first(seen, "trainer_allocator_retained_bytes"),
        sample_age={
            _COLLECTORS.get(one.label("collector"), one.label("collector")): values
            for one, values in _named(seen, "trainer_exporter_sample_age_seconds")
        },
        named=_first(seen, "trainer_named_leaks_growth_bytes_per_minute"),
        named_share=_first(seen, "trainer_named_leaks_share_ratio"),
    )
    graphs = {
        Component("buffer", one.label("buffer")): (tensors, items)
        for one, tensors in _named(seen, "trainer_buffer_graph_tensors")
        if (items := seen.get(Series("trainer_buffer_items", one.labels)))
    }
    return Observed(process, levels, _bounded(seen), graphs)


def _levels(
    seen: Mapping[Series, Values], with_bound: set[Component], held: Values | None
) -> dict[Component, Values]:
    """Every level but the items of containers with a bound; memory without the bytes `held` in them."""
    levels = {}
    for one, values in seen.items():
        resource, names = LEVELS.get(one.name, ("", ()))
        component = Component(resource, " ".join(map(one.label, names)))
        unused_part = "part" in names and one.label("part") not in _PARTS_IN_USE
        if resource and component not in with_bound and not unused_part:
            levels[component] = values
    if held and MEMORY in levels:
        levels[MEMORY] = _without(levels[MEMORY], held)
    unique = _first(seen, "trainer_process_unique_memory_bytes", role="worker")
    if unique and WORKERS in levels:
        pairs = zip(unique, levels[WORKERS], strict=True)
        levels[WORKERS] = [resident if alone is None else alone for alone, resident in pairs]
    if workers := _first(seen, "trainer_processes", role="worker"):
        levels[Component("objects", "worker_processes")] = workers
    if programs := _first(seen, "trainer_jax_compiled_programs"):
        levels[Component("objects", "jax_programs")] = programs
    return levels


def _bounded(seen: Mapping[Series, Values]) -> dict[Component, tuple[Values, Values]]:
    found = {}
    for one, items in seen.items():
        capacity = _capacity(seen, one, items)
        if capacity:
            resource, names = LEVELS[one.name]
            found[Component(resource, " ".join(map(one.label, names)))] = items, capacity
    return found


def _capacity(seen: Mapping[Series, Values], one: Series, items: Values) -> Values | None:
    """The capacity of a container in items; computed from the bytes if only these are known."""
    if one.name == "trainer_event_list_items":
        return seen.get(Series("trainer_event_list_capacity_items", one.labels))
    if one.name != "trainer_buffer_items":
        return None
    if known := seen.get(Series("trainer_buffer_capacity_items", one.labels)):
        return known
    full = seen.get(Series("trainer_buffer_capacity_bytes", one.labels))
    held = seen.get(Series("trainer_buffer_bytes", one.labels))
    if not full or not held:
        return None
    return [
        count * whole / part if count is not None and whole is not None and part else None
        for count, whole, part in zip(items, full, held, strict=True)
    ]


def _named(seen: Mapping[Series, Values], name: str) -> Iterator[tuple[Series, Values]]:
    return ((one, values) for one, values in seen.items() if one.name == name)


def _first(seen: Mapping[Series, Values], name: str, **labels: str) -> Values | None:
    wanted = labels.items()
    return next((values for one, values in _named(seen, name) if wanted <= dict(one.labels).items()), None)


def _zeros(values: Values | None, many: int) -> Values:
    """Start times of 0 for a trainer that exposes none, at each evaluation at which it is there."""
    return [None if value is None else 0.0 for value in values or [None] * many]


def _together(all_values: Iterable[Values]) -> Values | None:
    """The sum of the known values at each evaluation."""
    return reduce(_added, all_values, None)


def _added(left: Values | None, right: Values) -> Values:
    if left is None:
        return right
    return [b if a is None else a if b is None else a + b for a, b in zip(left, right, strict=True)]


def _without(values: Values, part: Values) -> Values:
    return [a if a is None or b is None else a - b for a, b in zip(values, part, strict=True)]


def _slowest(all_values: Iterable[Values]) -> Values | None:
    """The lowest known value at each evaluation."""
    columns = list(zip(*all_values, strict=True))
    return [min((v for v in column if v is not None), default=None) for column in columns] or None


def resets(process: Process) -> list[bool]:
    """Whether a restart or a cleanup was less than four minutes ago: the level before it does not count."""
    resets = []
    for index in range(len(process.time)):
        now, then = process.start[index], at(process.start, index - RESET_EVALUATIONS)
        restarted = now is not None and then is not None and now != then
        resets.append(restarted or _cleaned(process.cleanups, index))
    return resets


def _cleaned(cleanups: Values | None, index: int) -> bool:
    if cleanups is None:
        return False
    recent = [count for count in cleanups[max(0, index - RESET_EVALUATIONS) : index + 1] if count is not None]
    return len(set(recent)) > 1


def maturity_of(process: Process, index: int) -> int:
    """2: past start-up and two cycles; 1: younger, but training and past four cycles; 0: too early."""
    start, cycles = process.start[index], _of(process.cycles, index)
    if start is None:
        return 0
    age = process.time[index] - start
    started = cycles is None or cycles >= MATURE_CYCLES or age > MATURE_SECONDS
    if started and same_process(process, index, MATURE_MINUTES):
        return 2
    known = at(process.start, index - YOUNG_EVALUATIONS) == start
    return int(known and has_trained(process, index, YOUNG_EVALUATIONS))


def has_trained(process: Process, index: int, evaluations: int, least: int = YOUNG_CYCLES) -> bool:
    """Whether `least` cycles (four steps, where none are counted) have ended, and it trained so many ago."""
    cycles, steps_taken = _of(process.cycles, index), _of(process.steps, index)
    before = any((_of(counts, index - evaluations) or 0) > 0 for counts in (process.steps, process.cycles))
    if cycles is not None:
        return before and cycles >= least
    return before and steps_taken is not None and steps_taken >= YOUNG_CYCLES


def counts(process: Process, index: int) -> bool:
    """Whether it counts cycles or steps."""
    return _of(process.cycles, index) is not None or _of(process.steps, index) is not None


def rate_ratio(process: Process, index: int) -> float | None:
    """Steps in the last three minutes over steps in the three minutes before; None without steps."""
    now, middle, half, first = (_of(process.steps, index - back) for back in (0, 5, 6, 11))
    if now is None or middle is None or half is None or first is None or half <= first:
        return None
    slowest, fastest = RATE_RATIO_LIMITS
    return min(max((now - middle) / (half - first), slowest), fastest)


def same_process(process: Process, index: int, minutes: int) -> bool:
    """Whether the present process was running `minutes` ago."""
    now, then = process.start[index], at(process.start, index - steps(minutes))
    return now is not None and now == then


def _of(values: Values | None, index: int) -> float | None:
    return at(values, index) if values is not None else None


def explained(process: Process, gains: Sums) -> list[float]:
    """Growth of memory per minute that is no leak; minus infinity where none is known.

    It is that of bounded buffers, of freed memory that malloc keeps, and of pages touched late.

    Args:
        process: series of the trainer's process.
        gains: rise of the high-water mark of its memory at each evaluation.

    """
    parts: list[list[float]] = []
    if process.bounded is not None:
        parts.append([BUFFER_TOLERANCE * (risen or 0.0) for risen in _risen(process.bounded, 16)])
    if process.retained is not None:
        parts.append([TOLERANCE * kept for kept in retention(process)])
    if process.virtual is not None:
        parts.append([TOLERANCE * pages for pages in _touched(process, process.virtual, gains)])
    return [sum(together) for together in zip(*parts, strict=True)] or [-math.inf] * len(process.time)


def retention(process: Process) -> list[float]:
    """Growth per minute of the freed memory that malloc keeps."""
    if process.retained is None:
        return [0.0] * len(process.time)
    slow, fast = _risen(lowest(process.retained, steps(3)), 16), _risen(process.retained, 6)
    return [max(one or 0.0, other or 0.0, 0.0) for one, other in zip(slow, fast, strict=True)]


def retention_continues(process: Process, share: float) -> list[bool]:
    """Whether retention grew in the last eight minutes by at least `share` of its growth in those before."""
    now = lowest(process.retained or [None] * len(process.time), steps(3))
    half, first = before(now, steps(8)), before(now, steps(16))
    return [
        latest is not None
        and middle is not None
        and earliest is not None
        and latest - middle >= share * (middle - earliest)
        and same_process(process, index, 16)
        for index, (latest, middle, earliest) in enumerate(zip(now, half, first, strict=True))
    ]


def _risen(values: Values, minutes: int) -> Values:
    """The rise per minute of each value over `minutes`; a gap in the older values is bridged."""
    return [
        None if now is None or then is None else (now - then) / minutes
        for now, then in zip(values, before(bridged(values, steps(GAP_MINUTES)), steps(minutes)), strict=True)
    ]


def _touched(process: Process, virtual: Values, gains: Sums) -> list[float]:
    """Growth per minute without growth of virtual memory: the pages belong to an earlier allocation."""
    touched = [0.0] * len(virtual)
    for minutes in TOLERANCE_MINUTES:
        tops = highest(virtual, steps(minutes) + 1)
        for index, now in enumerate(tops):
            gained = gains.over(steps(minutes), index)
            if gained <= 0 or not same_process(process, index, minutes):
                continue
            then = _top_before(process, virtual, tops, minutes, index)
            if now is not None and then is not None:
                touched[index] = max(touched[index], (gained - max(now - then, 0.0)) / minutes)
    return touched


def _top_before(process: Process, virtual: Values, tops: Values, minutes: int, index: int) -> float | None:
    """The highest virtual memory of the window before; its last value if the process started within it."""
    then, earlier = index - steps(minutes), at(process.start, index - 2 * steps(minutes))
    another = earlier is not None and earlier != process.start[index]
    return at(virtual if another else tops, then)
