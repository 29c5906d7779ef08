from prometheus_client.parser import text_string_to_metric_families

from heapwatch.collectors.readings import Readings
from heapwatch.judge.component import Component
from heapwatch.recording.points import Pace, Point, component_of, point_of
from tests.support.runs import generations


def test_pages_that_workers_share_count_once():
    text = """
trainer_process_resident_memory_bytes{role="trainer"} 5e8
trainer_process_resident_memory_bytes{role="worker"} 4.5e9
trainer_process_unique_memory_bytes{role="worker"} 2e7
"""
    point = point_of(Readings(text_string_to_metric_families(text)), time=0.0, event="sample")
    assert (point.resident_bytes, point.worker_bytes) == (5e8, 2e7)


def test_an_item_is_told_by_its_name_what_it_counts():
    text = """
trainer_process_resident_memory_bytes{role="trainer"} 5e8
trainer_bodies{type="static"} 3
trainer_event_list_items{list="deaths"} 4
trainer_buffer_bytes{buffer="replay"} 5
trainer_buffer_items{buffer="replay"} 5
trainer_entities{type="food"} 6
"""
    point = point_of(Readings(text_string_to_metric_families(text)), time=0.0, event="sample")
    assert {component_of(name): count for name, count in point.items.items()} == {
        Component("bodies", "static"): 3,
        Component("events", "deaths"): 4,
        Component("buffer", "replay"): 5,
        Component("entities", "food"): 6,
    }


def test_a_long_run_keeps_fewer_and_fewer_whole_cycles_and_the_start():
    points = generations(20_000, evaluation=1e6).points
    pace = Pace(0.01)
    kept = [point for point in points if pace.keeps(point)]
    assert kept[0] == points[0]
    cycles = [point.cycle("generation") for point in kept[1:]]
    assert cycles[:200] == [cycle for cycle in range(1, 51) for _ in range(4)]
    assert {cycles.count(cycle) for cycle in cycles} == {4}
    assert 400 < len(set(cycles)) < 800
    assert cycles[-1] > 0.98 * 20_000


def test_a_phase_that_ends_with_its_cycle_is_kept():
    pace = Pace(0.001)
    ended = Point(102.0, "cycle", 1e9, progress={"episode": 16})
    evaluated = Point(102.001, "phase", 1e9, phase="evaluate", progress={"episode": 16})
    assert [point for point in (Point(100.0, "start", 1e9), ended, evaluated) if pace.keeps(point)][1:] == [
        ended,
        evaluated,
    ]


def test_a_checkpoint_is_kept_with_the_end_of_its_phase():
    pace, kept = Pace(0.1), []
    for second in range(1000):
        about = {"phase": "train", "resident_bytes": 1e9}
        pair = [Point(second, "phase", **about), Point(second + 0.1, "checkpoint", **about)]
        keeps = [pace.keeps(point) for point in pair]
        assert keeps[0] == keeps[1]
        kept += keeps
    assert 20 < sum(kept) < 200


def test_points_without_cycles_are_kept_at_intervals():
    pace = Pace(0.01)
    kept = [n for n in range(10_000) if pace.keeps(Point(15.0 * n, "sample", 1e9, progress={"step": n}))]
    assert kept[:100] == list(range(100))
    assert len(kept) < 700
    late = Point(15.0 * kept[-1] + 1, "sample", 1e9)
    assert not pace.keeps(late)
    assert pace.keeps(Point(late.time, "sample", 1e9, large=(("ndarray", 2e7),)))
