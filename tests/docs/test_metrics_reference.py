import subprocess
import sys
from pathlib import Path

import pytest

from docs.metrics_reference import reference

REPOSITORY = Path(__file__).parents[2]

# The names that rules, dashboards and the receiver build on.
AGREED = [
    "trainer_info",
    "trainer_process_resident_memory_bytes",
    "trainer_process_virtual_memory_bytes",
    "trainer_process_unique_memory_bytes",
    "trainer_process_cpu_seconds_total",
    "trainer_processes",
    "trainer_memory_limit_bytes",
    "trainer_gpu_memory_allocated_bytes",
    "trainer_gpu_memory_reserved_bytes",
    "trainer_gpu_memory_used_bytes",
    "trainer_gpu_memory_total_bytes",
    "trainer_gpu_process_memory_bytes",
    "trainer_gpu_utilization_ratio",
    "trainer_gpu_temperature_celsius",
    "trainer_gpu_power_watts",
    "trainer_gpu_info",
    "trainer_bodies",
    "trainer_entities",
    "trainer_event_list_items",
    "trainer_event_list_capacity_items",
    "trainer_buffer_items",
    "trainer_buffer_bytes",
    "trainer_buffer_capacity_bytes",
    "trainer_buffer_capacity_items",
    "trainer_buffer_attached_tensors",
    "trainer_objects",
    "trainer_object_size_bytes",
    "trainer_progress_total",
    "trainer_phase_end_resident_memory_bytes",
    "trainer_phase_memory_delta_bytes",
    "trainer_phase_duration_seconds",
    "trainer_last_progress_timestamp_seconds",
    "trainer_cleanups_total",
    "trainer_cleanup_freed_bytes_total",
    "trainer_cleanup_removed_total",
    "trainer_cleanup_duration_seconds",
    "trainer_limit",
    "trainer_growth_limit",
    "trainer_exporter_collect_seconds",
    "trainer_exporter_collect_errors_total",
    "trainer_exporter_sample_age_seconds",
    "walker_body_types_total",
    "walker_system_memory_mb",
    "walker_system_cpu_percent",
    "walker_entities_total",
]


def check(path):
    return subprocess.run(
        [sys.executable, "-m", "docs.metrics_reference", "--check", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_committed_reference_is_what_the_exporter_says():
    assert check(REPOSITORY / "docs" / "metrics.md").returncode == 0


@pytest.mark.parametrize("name", AGREED)
def test_every_agreed_name_is_documented(name):
    assert f"| `{name}` |" in reference()


def test_a_difference_is_told(tmp_path):
    path = tmp_path / "metrics.md"
    path.write_text(reference().replace("Live processes.", "Dead processes."))
    done = check(path)
    assert done.returncode == 1
    assert "run python -m docs.metrics_reference" in done.stderr


def test_it_writes_what_it_checks(tmp_path):
    path = tmp_path / "docs" / "metrics.md"
    subprocess.run([sys.executable, "-m", "docs.metrics_reference", str(path)], check=True)
    assert path.read_text() == reference()
