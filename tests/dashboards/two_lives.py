"""Two trainers that are the same process; at the address of one of them another process ran before."""

from collections.abc import Callable

from tests.dashboards.gpus import gpu
from tests.dashboards.series import Clock, Series, Shape, Value
from tests.dashboards.trainers import Trainer

HOST = 23e9
AGES = (30, 6)  # minutes since the second process began
GAP = 3  # minutes without a process


def _life(clock: Clock, age: float, *, again: bool) -> Trainer:
    began = clock.minutes - age
    name = f"{'again' if again else 'alone'}-{age}:7777"
    one = Trainer(clock, name, "ppo", "torch", began, (0 if again else began, float("inf")))

    def then(first: Shape, second: Callable[[float], float]) -> Callable[[float], Value]:
        """Level before, another level or slope now."""
        before = first if callable(first) else lambda minute: first

        def value(minute: float) -> Value:
            if minute >= began:
                return second(minute - began)
            return before(minute) if again and minute < began - GAP else None

        return value

    one.memory(then(9e9, lambda m: 1e9 + 2e6 * m), HOST)
    labels = {"path": "history", "type": "list", "kind": "container"}
    for metric, shape in (
        ("bytes", then(8e9, lambda m: 1e8 + 2e6 * m)),
        ("items", then(1e6, lambda m: 50 * m)),
    ):
        one.add(f"trainer_growing_path_{metric}", shape, **labels)
    one.add("trainer_growing_path_growth_bytes_per_minute", 2e6, **labels)
    one.add("trainer_growing_path_leak", 0, **labels, site="a.py:1", remedy="")
    one.says((0, "healthy"))
    for unit, rate in (("step", 600.0), ("epoch", 0.5)):
        one.add(
            "trainer_progress_total", then(lambda m, r=rate: 40 * r * m, lambda m, r=rate: r * m), unit=unit
        )
    for phase, gain in (("rollout", 4e6), ("update", 1e6)):
        one.add("trainer_phase_end_resident_memory_bytes", then(9e9, lambda m: 1e9 + 2e6 * m), phase=phase)
        one.add("trainer_phase_memory_delta_bytes", then(5e8, lambda m, gain=gain: gain), phase=phase)
        one.add("trainer_phase_duration_seconds_count", then(lambda m: 90 * m, lambda m: m / 2), phase=phase)
        one.add("trainer_phase_duration_seconds_sum", then(lambda m: 90 * m, lambda m: 20 * m), phase=phase)
    for metric, label in COUNTED.items():
        one.add(metric, then(5e5, lambda m: 10 + 3 * m), **{label: "thing"})
    one.add("trainer_buffer_items", then(9e5, lambda m: 100 * m), buffer="replay")
    one.add("trainer_buffer_bytes", then(9e8, lambda m: 1e5 * m), buffer="replay")
    one.add("trainer_buffer_capacity_items", then(1e6, lambda m: 1e6), buffer="replay")
    gpu(one, "0", then(9e9, lambda m: 1e9 + 1e6 * m), cached=1e9)
    # Made up as if one process had both lives.
    one.series = [found for found in one.series if found.labels.get("component") != "since start"]
    return one


COUNTED = {
    "trainer_bodies": "type",
    "trainer_entities": "type",
    "trainer_event_list_items": "list",
    "trainer_objects": "type",
    "trainer_object_size_bytes": "object",
}


def lives(clock: Clock) -> list[Series]:
    """All of them, of each age."""
    return [
        series for age in AGES for again in (True, False) for series in _life(clock, age, again=again).series
    ]
