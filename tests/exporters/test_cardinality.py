"""A trainer that declares names without end costs no more series than the cap of each kind."""

from collections import Counter
from functools import partial

import pytest

from heapwatch import Watch
from heapwatch.runtime.labels import MAX_NAMES

LABELS_OF_A_NAME = 3  # at most, beside the name: severities of a limit, places of memory
MOST_SERIES = LABELS_OF_A_NAME * (MAX_NAMES + 1)
NAMES = [f"name {number}" for number in range(2 * MOST_SERIES)]


def one():
    return 1


def declare_all(declare, watch):
    for name in NAMES:
        try:
            declare(watch, name)
        except ValueError:
            return  # refused: says so to who declares


def counted_phase(watch, name):
    with watch.phase(name):
        pass


def cleaned(watch):
    watch.on_cleanup(lambda action: dict.fromkeys(NAMES, 1))
    watch.cleanup()


FILLS = {
    "entities": lambda watch, name: watch.entities(name, one),
    "events": lambda watch, name: watch.events(name, one, capacity=9),
    "buffers": lambda watch, name: watch.buffer(name, items=one, nbytes=one, capacity=9),
    "sizes": lambda watch, name: watch.size(name, one),
    "objects": lambda watch, name: watch.objects(type(name, (), {})),
    "limits": lambda watch, name: watch.limit("bodies", name, warning=1, critical=2, emergency=3),
    "growth limits": lambda watch, name: watch.growth_limit(
        "objects", name, per_minute=1, per_epoch=2, per_generation=3
    ),
    "expected objects": lambda watch, name: watch.expect(type(name, (), {}), 1),
    "phases": counted_phase,
    "progress": lambda watch, name: watch.progress(name),
    "checkpoints": lambda watch, name: watch.checkpoint(name),
}


@pytest.mark.parametrize(
    "fill",
    [
        *(partial(declare_all, declare) for declare in FILLS.values()),
        lambda watch: watch.bodies(lambda: dict.fromkeys(NAMES, 1)),
        cleaned,
    ],
    ids=[*FILLS, "bodies", "removed"],
)
def test_a_kind_of_name_costs_its_cap(fill):
    watch = Watch("crowded")
    try:
        fill(watch)
        point = watch.exporter.safe_point
        point.sample_now(*(task.sampler for task in point.tasks))
        series = Counter(
            sample.name for family in watch.exporter.snapshots.take(30).families for sample in family.samples
        )
        assert max(series.values()) <= MOST_SERIES, series.most_common(3)
    finally:
        watch.stop()
