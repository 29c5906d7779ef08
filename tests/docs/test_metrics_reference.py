import re
import sys

from docs.generated import write_or_check
from docs.metrics_reference import PAGE, reference
from tests.support.repository import REPOSITORY

# The names that rules, dashboards and the receiver build on.
AGREED = {
    "trainer_info", "trainer_process_resident_memory_bytes", "trainer_process_virtual_memory_bytes",
    "trainer_process_unique_memory_bytes", "trainer_process_cpu_seconds_total", "trainer_processes",
    "trainer_memory_limit_bytes", "trainer_gpu_memory_allocated_bytes", "trainer_gpu_memory_reserved_bytes",
    "trainer_gpu_memory_used_bytes", "trainer_gpu_memory_total_bytes", "trainer_gpu_process_memory_bytes",
    "trainer_gpu_utilization_ratio", "trainer_gpu_temperature_celsius", "trainer_gpu_power_watts",
    "trainer_gpu_info", "trainer_bodies", "trainer_entities", "trainer_event_list_items",
    "trainer_event_list_capacity_items", "trainer_buffer_items", "trainer_buffer_bytes",
    "trainer_buffer_capacity_bytes", "trainer_buffer_capacity_items", "trainer_buffer_attached_tensors",
    "trainer_objects", "trainer_object_size_bytes", "trainer_progress_total",
    "trainer_phase_end_resident_memory_bytes", "trainer_phase_memory_delta_bytes",
    "trainer_phase_duration_seconds", "trainer_last_progress_timestamp_seconds", "trainer_cleanups_total",
    "trainer_cleanup_freed_bytes_total", "trainer_cleanup_removed_total",
    "trainer_cleanup_duration_seconds", "trainer_limit", "trainer_growth_limit",
    "trainer_exporter_collect_seconds", "trainer_exporter_collect_errors_total",
    "trainer_exporter_sample_age_seconds", "walker_body_types_total", "walker_system_memory_mb",
    "walker_system_cpu_percent", "walker_entities_total",
}  # fmt: skip


def test_the_committed_reference_is_what_the_exporter_says_and_has_every_agreed_name():
    text = (REPOSITORY / PAGE).read_text()
    assert text == reference()
    assert AGREED - set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set()


def test_a_difference_is_reported_and_what_is_written_is_none(tmp_path, monkeypatch, capsys):
    page, other = tmp_path / "page.md", tmp_path / "other.md"
    page.write_text("Dead processes.")
    files = {page: "Live processes.", other: "New."}
    monkeypatch.setattr(sys, "argv", ["docs.some", "--check"])
    assert write_or_check("docs.some", files) == 1
    reported = [f"{path} is not what would be written: run python -m docs.some" for path in files]
    assert capsys.readouterr().err.splitlines() == reported
    monkeypatch.setattr(sys, "argv", ["docs.some"])
    assert write_or_check("docs.some", files) == 0
    assert page.read_text() == "Live processes."
    monkeypatch.setattr(sys, "argv", ["docs.some", "--check"])
    assert write_or_check("docs.some", files) == 0
