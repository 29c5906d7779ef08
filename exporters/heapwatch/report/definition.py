"""A recorded run as the series of the leak definition, and its verdicts: those of the alert rules."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from statistics import median

from heapwatch.analysis.judge import Verdicts, judge
from heapwatch.analysis.leak import WINDOWS
from heapwatch.analysis.observed import Series, observed
from heapwatch.analysis.timeline import STEP_SECONDS
from heapwatch.recording.points import Point, Run

# Points further apart say too little of the shortest ordinary window: an eighth of it, as for the rules.
_MOST_SECONDS = 60 * WINDOWS[0] / 8


def verdicts_of(run: Run) -> Verdicts | None:
    """What the definition says of a run; None where its points lie too far apart."""
    times = [point.time for point in run.points]
    if len(times) < 2 or median(later - earlier for earlier, later in pairwise(times)) > _MOST_SECONDS:
        return None
    samples: dict[Series, list[tuple[float, float]]] = defaultdict(list)
    for point in run.points:
        for series, value in _exposed(point, times[0]):
            samples[series].append((point.time, value))
    return judge(observed(samples, times[0], int((times[-1] - times[0]) / STEP_SECONDS) + 1))


def _exposed(point: Point, start: float) -> list[tuple[Series, float]]:
    """What the trainer exposed at the point, as far as it is recorded."""
    found = [(Series("process_start_time_seconds"), start)]
    for name, label, value in (
        ("trainer_process_resident_memory_bytes", ("role", "trainer"), point.resident_bytes),
        ("trainer_process_virtual_memory_bytes", ("role", "trainer"), point.virtual_bytes),
        ("trainer_process_resident_memory_bytes", ("role", "worker"), point.worker_bytes),
        ("trainer_gpu_memory_allocated_bytes", ("device", "all"), point.gpu_allocated_bytes),
    ):
        if value is not None:
            found.append((Series(name, (label,)), value))
    for unit, count in point.progress.items():
        found.append((Series("trainer_progress_total", (("unit", unit),)), count))
    for name, buffer in point.buffers.items():
        found.append((Series("trainer_buffer_bytes", (("buffer", name),)), buffer.nbytes))
        if buffer.full_bytes is not None:
            found.append((Series("trainer_buffer_capacity_bytes", (("buffer", name),)), buffer.full_bytes))
    for name, count in point.objects.items():
        found.append((Series("trainer_objects", (("type", name),)), count))
    for name, count in point.items.items():
        if name not in point.bounds:
            found.append((Series("trainer_entities", (("type", name),)), count))
    for name, size in point.sizes.items():
        found.append((Series("trainer_object_size_bytes", (("object", name),)), size))
    return found
