"""A run as Prometheus recorded it."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from prometheus_client import Metric

from heapwatch.analysis.readings import Readings
from heapwatch.errors import UsageError
from heapwatch.explain.received import exposed_explanation
from heapwatch.http.client import data_of, escaped, get_json, understood
from heapwatch.recording.points import CYCLES, Point, Run, point_of

_NAMES = (
    "trainer_info|trainer_process_(resident|virtual)_memory_bytes|trainer_gpu_memory_(allocated|reserved)_bytes"
    "|trainer_buffer_(bytes|items|capacity_bytes|capacity_items)|trainer_bodies|trainer_entities"
    "|trainer_event_list_(items|capacity_items)|trainer_objects|trainer_object_size_bytes|trainer_growth_limit"
    "|trainer_progress_total|trainer_phase_(end_resident|delta).*|trainer_phase_memory_delta_bytes"
    "|trainer_phase_duration_seconds_count|process_start_time_seconds"
    "|trainer_memory_(verdict|growth_bytes_per_minute|growth_explained_ratio|time_to_limit_seconds)"
    "|trainer_growing_path_.*|trainer_exporter_sample_age_seconds"
)
_SCRAPE_SECONDS = 15.0
_MOST_STEPS = 3000


class _PhaseEnd(NamedTuple):
    phase: str
    run: float
    resident_bytes: float
    delta_bytes: float


def read_prometheus(url: str, *, job: str, instance: str | None, since_seconds: float) -> Run:
    """The run of one trainer, from its last start on.

    Args:
        url: of Prometheus.
        job: the scrape job.
        instance: `host:port`; may be omitted if only one trainer was scraped.
        since_seconds: how far to look back.

    Raises:
        UsageError: there is no such trainer, or several and none was chosen.
        Unreachable: Prometheus does not answer.

    """
    now = time.time()
    step = max(_SCRAPE_SECONDS, since_seconds / _MOST_STEPS)
    selector = f'job="{escaped(job)}"' + (f', instance="{escaped(instance)}"' if instance else "")
    answer = get_json(
        f"{url}/api/v1/query_range",
        {
            "query": f'{{__name__=~"{_NAMES}", {selector}}}',
            "start": f"{now - since_seconds:.3f}",
            "end": f"{now:.3f}",
            "step": f"{step:.3f}",
        },
    )
    exposed: dict[float, Metric] = defaultdict(lambda: Metric("all", "", "unknown"))
    instances = set()
    with understood(url):
        for series in data_of(answer).get("result", []):
            labels = {str(name): str(value) for name, value in series["metric"].items()}
            instances.add(labels.get("instance", ""))
            for moment, value in series["values"]:
                exposed[float(moment)].add_sample(labels["__name__"], labels, float(value))
    if len(instances) > 1:
        raise UsageError(
            f"job {job} has several trainers; choose with --instance: {', '.join(sorted(instances))}"
        )
    run = run_points([(moment, Readings([exposed[moment]])) for moment in sorted(exposed)])
    if not run.points:
        whom = f"{instance} in job {job}" if instance else f"job {job}"
        raise UsageError(f"Prometheus has nothing of {whom} in the last {since_seconds / 3600:g} h")
    return replace(run, trainer=run.trainer or max(instances))


def run_points(exposed: list[tuple[float, Readings]]) -> Run:
    """The points that expositions show: from the last start on, every end of a phase that was seen.

    Phases that ended between two expositions are ordered so that each begins with the memory at which the
    previous one ended.
    """
    starts = [readings.value("process_start_time_seconds") for _, readings in exposed]
    first = max((i for i, (a, b) in enumerate(pairwise(starts), 1) if a and b and b - a > 1), default=0)
    notes = () if first == 0 else ("The trainer was restarted; the report begins with its last start.",)
    exposed = exposed[first:]
    points: list[Point] = []
    before: Readings | None = None
    for moment, readings in exposed:
        began = readings.value("process_start_time_seconds")
        is_start = before is None and began is not None and moment - began < 4 * _SCRAPE_SECONDS
        point = point_of(readings, time=moment, event="start" if is_start else "sample")
        if point is None:
            continue
        ended = [] if before is None else _in_order(_ended(before, readings), points[-1].resident_bytes)
        points += [_at_phase_end(point, phase) for phase in ended] or [point]
        before = readings
    trainer = before.labels("trainer_info").get("trainer", "") if before else ""
    explanation = exposed_explanation(before) if before else None
    return Run(trainer, tuple(points), notes, explanation.as_json() if explanation else None)


def _ended(before: Readings, now: Readings) -> list[_PhaseEnd]:
    counted_before = before.by("trainer_phase_duration_seconds_count", "phase")
    resident = now.by("trainer_phase_end_resident_memory_bytes", "phase")
    delta = now.by("trainer_phase_memory_delta_bytes", "phase")
    return [
        _PhaseEnd(phase, count, resident[phase], delta.get(phase, 0.0))
        for phase, count in now.by("trainer_phase_duration_seconds_count", "phase").items()
        if count > counted_before.get(phase, 0) and phase in resident
    ]


def _in_order(ended: list[_PhaseEnd], resident_bytes: float) -> list[_PhaseEnd]:
    ordered, left = [], list(ended)
    while left:
        following = min(left, key=lambda end: abs(end.resident_bytes - end.delta_bytes - resident_bytes))
        left.remove(following)
        ordered.append(following)
        resident_bytes = following.resident_bytes
    return ordered


def _at_phase_end(point: Point, end: _PhaseEnd) -> Point:
    return replace(
        point,
        event="phase",
        phase=end.phase,
        resident_bytes=end.resident_bytes,
        delta_bytes=end.delta_bytes,
        progress=_progress_at(point.progress, end.run),
    )


def _progress_at(progress: Mapping[str, float], run: float) -> Mapping[str, float]:
    """The progress when a phase ended. One that runs once a cycle belongs to the cycle of its own number."""
    unit = next((unit for unit in CYCLES if unit in progress), None)
    if unit is None or abs(progress[unit] - run) > 1:
        return progress
    return {**progress, unit: run - 1}
