"""A trainer that declares names without end costs no more series than the cap of each kind."""

from collections import Counter

import pytest

from heapwatch import Watch
from heapwatch.runtime.labels import MAX_NAMES

NAMES = [f"name {number}" for number in range(3000)]
LABELS_OF_A_NAME = 3  # at most, beside the name: severities of a limit, places of memory


def one():
    return 1


def declare_all(declare):
    for name in NAMES:
        try:
            declare(name)
        except ValueError:
            return  # refused: says so to who declares


def counted_phase(watch, name):
    with watch.phase(name):
        pass


def cleaned(watch, names):
    watch.on_cleanup(lambda action: dict.fromkeys(names, 1))
    watch.cleanup()


@pytest.mark.parametrize(
    "fill",
    [
        lambda watch: declare_all(lambda name: watch.entities(name, one)),
        lambda watch: declare_all(lambda name: watch.events(name, one, capacity=9)),
        lambda watch: declare_all(lambda name: watch.buffer(name, items=one, nbytes=one, capacity=9)),
        lambda watch: declare_all(lambda name: watch.size(name, nbytes=one)),
        lambda watch: declare_all(lambda name: watch.objects(type(name, (), {}))),
        lambda watch: declare_all(
            lambda name: watch.limit("bodies", name, warning=1, critical=2, emergency=3)
        ),
        lambda watch: declare_all(
            lambda name: watch.growth_limit("objects", name, per_minute=1, per_epoch=2, per_generation=3)
        ),
        lambda watch: declare_all(lambda name: watch.expect(type(name, (), {}), 1)),
        lambda watch: declare_all(lambda name: counted_phase(watch, name)),
        lambda watch: declare_all(lambda name: watch.progress(name)),
        lambda watch: declare_all(watch.checkpoint),
        lambda watch: watch.bodies(lambda: dict.fromkeys(NAMES, 1)),
        lambda watch: cleaned(watch, NAMES),
    ],
    ids=[
        "entities",
        "events",
        "buffers",
        "sizes",
        "objects",
        "limits",
        "growth limits",
        "expected objects",
        "phases",
        "progress",
        "checkpoints",
        "bodies",
        "removed",
    ],
)
def test_a_kind_of_name_costs_its_cap(fill):
    watch = Watch("crowded")
    try:
        fill(watch)
        point = watch._exporter.safe_point
        point.sample_now(*(task.sampler for task in point.tasks))
        series = Counter(
            sample.name for family in watch._exporter.exposition.collect() for sample in family.samples
        )
        assert max(series.values()) <= LABELS_OF_A_NAME * (MAX_NAMES + 1), series.most_common(3)
    finally:
        watch.stop()
