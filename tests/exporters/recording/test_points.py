from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.readings import Readings
from heapwatch.recording.points import point_of


def test_pages_that_workers_share_count_once():
    text = """
trainer_process_resident_memory_bytes{role="trainer"} 5e8
trainer_process_resident_memory_bytes{role="worker"} 4.5e9
trainer_process_unique_memory_bytes{role="worker"} 2e7
"""
    point = point_of(Readings(text_string_to_metric_families(text)), time=0.0, event="sample")
    assert (point.resident_bytes, point.worker_bytes) == (5e8, 2e7)
