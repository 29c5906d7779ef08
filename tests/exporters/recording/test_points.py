import json

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.readings import Readings
from heapwatch.recording.points import Point, from_json, point_of, to_json

names = st.text(min_size=1, max_size=20)
sizes = st.floats(0, 1e15)


@given(
    st.builds(
        Point,
        time=sizes,
        event=st.sampled_from(["start", "phase", "cycle", "sample"]),
        resident_bytes=sizes,
        phase=st.text(max_size=20),
        delta_bytes=st.none() | st.floats(-1e15, 1e15),
        worker_bytes=st.none() | sizes,
        objects=st.dictionaries(names, sizes, max_size=3),
        items=st.dictionaries(names, sizes, max_size=3),
        bounds=st.dictionaries(names, sizes, max_size=3),
        sizes=st.dictionaries(names, sizes, max_size=3),
    )
)
def test_any_point_survives_json(point):
    assert from_json(json.loads(json.dumps(to_json(point)))) == point


def test_pages_that_workers_share_count_once():
    text = """
trainer_process_resident_memory_bytes{role="trainer"} 5e8
trainer_process_resident_memory_bytes{role="worker"} 4.5e9
trainer_process_unique_memory_bytes{role="worker"} 2e7
"""
    point = point_of(Readings(text_string_to_metric_families(text)), time=0.0, event="sample")
    assert (point.resident_bytes, point.worker_bytes) == (5e8, 2e7)
