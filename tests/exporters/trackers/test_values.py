import pytest

from heapwatch.recording.points import Buffer, Point
from heapwatch.trackers import CycleLogger


@pytest.fixture
def logged():
    return []


@pytest.fixture
def logger(logged):
    return CycleLogger("list", lambda values, cycle: logged.append((cycle, dict(values))))


def epoch(number, **fields):
    return Point(60.0 * number, "cycle", 1e9 + 2e6 * number, progress={"epoch": number}, **fields)


def test_the_documents_names_and_units(logger, logged):
    for number in (1, 2, 3):
        logger.take(
            epoch(
                number,
                sizes={"trainer.stats": 1e6 * number},
                objects={"Environment": 16 * number},
                items={"food_sources": 6 * number},
                buffers={"replay": Buffer(5e6)},
            )
        )
    assert [cycle for cycle, _ in logged] == [1, 2, 3]
    assert logged[-1][1] == {
        "memory/rss_mb": 1006.0,
        "memory/rss/growth_mb_per_epoch": 2.0,
        "memory/trainer.stats/size_mb": 3.0,
        "memory/trainer.stats/growth_mb_per_epoch": 1.0,
        "memory/buffer.replay/size_mb": 5.0,
        "memory/buffer.replay/growth_mb_per_epoch": 0.0,
        "memory/food_sources/count": 18,
        "memory/food_sources/growth_per_epoch": 6.0,
        "memory/Environment/count": 48,
        "memory/Environment/growth_per_epoch": 16.0,
    }


def test_only_the_ends_of_cycles_are_logged_and_after_one_no_growth_is_known(logger, logged):
    for event in ("start", "phase", "sample"):
        logger.take(Point(0.0, event, 1e9))
    logger.take(epoch(1))
    assert logged == [(1, {"memory/rss_mb": 1002.0})]
