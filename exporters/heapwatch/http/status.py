"""The status of a trainer: the JSON of `/performance_status`, and the landing page `/`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from html import escape
from typing import Any

from prometheus_client import Metric

from heapwatch.collectors.readings import CYCLES, Readings, growth_limits_of, limits_of
from heapwatch.explain.findings import Explanation, labelled, message
from heapwatch.judge.component import Component
from heapwatch.judge.limits import ExceededLimit, growth_alert, limit_of, threshold_alert
from heapwatch.judge.rates import CycleRates, GrowthRates
from heapwatch.judge.trainer import Leak
from heapwatch.runtime.cleanup import CleanupResult

# document key -> {field: series}, all by one label
_TABLES: dict[str, tuple[str, dict[str, str]]] = {
    "events": (
        "list",
        {"items": "trainer_event_list_items", "capacity_items": "trainer_event_list_capacity_items"},
    ),
    "buffers": (
        "buffer",
        {
            "items": "trainer_buffer_items",
            "bytes": "trainer_buffer_bytes",
            "capacity_items": "trainer_buffer_capacity_items",
            "capacity_bytes": "trainer_buffer_capacity_bytes",
            "attached_tensors": "trainer_buffer_attached_tensors",
            "graph_tensors": "trainer_buffer_graph_tensors",
        },
    ),
    "gpu_memory": (
        "device",
        {
            "allocated_bytes": "trainer_gpu_memory_allocated_bytes",
            "reserved_bytes": "trainer_gpu_memory_reserved_bytes",
            "process_bytes": "trainer_gpu_process_memory_bytes",
            "used_bytes": "trainer_gpu_memory_used_bytes",
            "total_bytes": "trainer_gpu_memory_total_bytes",
        },
    ),
}

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 3rem auto; padding: 0 1rem; }
th, td { text-align: left; font-weight: normal; padding-right: 1rem; }
"""
_LINKS = (
    ("/metrics", "series for Prometheus"),
    ("/performance_status", "memory, entities, buffers, growth and alerts, as JSON"),
    ("/explain", "what grows, what holds it, and remedies, as JSON"),
    ("/healthz", "is it alive"),
    ("/readyz", "does training progress"),
)


class _Rate:
    """Increase of a counter per second, over at least a second; None as long as it is unknown."""

    def __init__(self) -> None:
        self.value: float | None = None
        self._last: tuple[float, float] | None = None

    def observe(self, now: float, total: float | None) -> None:
        """Add one reading; a counter that fell belongs to a new process."""
        if total is None:
            self._last = self.value = None
            return
        if self._last is not None:
            seconds, increase = now - self._last[0], total - self._last[1]
            if seconds < 1:
                return
            if increase >= 0:
                self.value = increase / seconds
        self._last = (now, total)


class Status:
    """Keeps a short history of the levels, and reports the status. Unknown values are absent, never 0.

    `clock` is in seconds since the epoch; `observations` counts the samples so far.
    """

    def __init__(
        self,
        explanation: Callable[[], Explanation],
        *,
        last_cleanup: Callable[[], CleanupResult | None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._last_cleanup = last_cleanup
        self._explanation = explanation
        self._clock = clock
        self._history: GrowthRates[Component] = GrowthRates()
        self._cycles: dict[str, CycleRates[Component]] = {unit: CycleRates() for unit in CYCLES}
        self._cpu = _Rate()
        self._steps = _Rate()
        self._observing = threading.Lock()
        self.observations = 0

    def observe(self, families: Iterable[Metric]) -> Readings:
        """Add one sample of every level to the history."""
        readings = Readings(families)
        with self._observing:
            self.observations += 1
            now = self._clock()
            levels = readings.levels()
            self._history.observe(now, levels)
            for unit, count in readings.by("trainer_progress_total", "unit").items():
                if unit in self._cycles:
                    self._cycles[unit].observe(now, count, levels)
            self._cpu.observe(now, readings.value("trainer_process_cpu_seconds_total", role="trainer"))
            self._steps.observe(now, readings.value("trainer_progress_total", unit="step"))
        return readings

    def document(self, families: Iterable[Metric]) -> dict[str, Any]:
        """Return the whole status, ready for JSON; sizes in bytes except the documented `memory_mb` (1e6)."""
        readings = self.observe(families)
        levels = readings.levels()
        with self._observing:
            growth = {component: self._history.per_minute(component) for component in levels}
        explanation = self._explanation()
        document = {
            "timestamp": self._clock(),
            "trainer": readings.labels("trainer_info"),
            "training": readings.training(self._clock()),
            "performance": self._performance(readings),
            "entities": _entities(readings),
            "memory": _memory(readings),
            "body_types": _numbers(readings.by("trainer_bodies", "type")),
            "objects": _numbers(readings.by("trainer_objects", "type")),
            "object_size_bytes": _numbers(readings.by("trainer_object_size_bytes", "object")),
            "progress": _numbers(readings.by("trainer_progress_total", "unit")),
            "sample_age_seconds": readings.by("trainer_exporter_sample_age_seconds", "collector"),
            "growth_per_minute": _nested(growth),
            "leaks": _leaks(explanation),
            **{key: _table(readings, label, fields) for key, (label, fields) in _TABLES.items()},
        }
        present = {key: value for key, value in document.items() if value != {}}
        alerts = [*self._alerts(readings, levels, growth), *map(_alert, explanation.leaks)]
        last = self._last_cleanup()
        return present | {
            "alerts": [asdict(alert) for alert in alerts],
            "last_cleanup": None if last is None else last.as_dict(),
        }

    def health(self, families: Iterable[Metric]) -> dict[str, Any]:
        """Return whether training progresses, which a responding server does not prove."""
        readings, now = Readings(families), self._clock()
        health: dict[str, Any] = {"status": "ok", "training": readings.training(now)}
        age = readings.seconds_since_progress(now)
        return health if age is None else health | {"seconds_since_progress": round(age, 3)}

    def _alerts(
        self, readings: Readings, levels: dict[Component, float], growth: Mapping[Component, float | None]
    ) -> Iterator[ExceededLimit]:
        limits, growth_limits = limits_of(readings), growth_limits_of(readings)
        for component, level in (levels | readings.grown()).items():
            alerts = [threshold_alert(component, level, limit_of(component, limits) or {})]
            for per, limit in (limit_of(component, growth_limits) or {}).items():
                rate = growth.get(component) if per == "minute" else self._per_cycle(component, per)
                alerts.append(growth_alert(component, rate, limit, per))
            yield from filter(None, alerts)

    def _per_cycle(self, component: Component, unit: str) -> float | None:
        with self._observing:
            return self._cycles[unit].per_cycle(component) if unit in self._cycles else None

    def _performance(self, readings: Readings) -> dict[str, float | str]:
        resident = readings.value("trainer_process_resident_memory_bytes", role="trainer")
        steps = readings.value("trainer_progress_total", unit="step")
        cpu, fps = self._cpu.value, self._steps.value
        values: dict[str, float | str | None] = {
            "memory_mb": None if resident is None else round(resident / 1e6, 3),
            "cpu_percent": None if cpu is None else round(100 * cpu, 2),
            "cpu_percent_of": None if cpu is None else "the trainer's process; 100 is one core",
            "step_count": None if steps is None else _number(steps),
            "fps": None if fps is None else round(fps, 2),
            "seconds_since_progress": readings.seconds_since_progress(self._clock()),
        }
        return {key: value for key, value in values.items() if value is not None}


def _entities(readings: Readings) -> dict[str, float]:
    bodies = readings.by("trainer_bodies", "type")
    world = {"world_bodies": sum(bodies.values())} if bodies else {}
    world |= {f"{kind}_bodies": bodies[kind] for kind in ("static", "dynamic") if kind in bodies}
    world |= {"total_agents": bodies["agent"]} if "agent" in bodies else {}
    return _numbers(world | readings.by("trainer_entities", "type"))


def _memory(readings: Readings) -> dict[str, Any]:
    memory: dict[str, Any] = {
        f"{kind}_bytes": _numbers(readings.by(f"trainer_process_{kind}_memory_bytes", "role"))
        for kind in ("resident", "virtual", "unique")
    }
    malloc = {kind: readings.value(f"trainer_allocator_{kind}_bytes") for kind in ("used", "retained")}
    memory["allocator_bytes"] = _numbers({kind: held for kind, held in malloc.items() if held is not None})
    for name in ("limit", "available"):
        nbytes = readings.value(f"trainer_memory_{name}_bytes")
        if nbytes is not None:
            memory[f"{name}_bytes"] = _number(nbytes)
    return {key: value for key, value in memory.items() if value != {}}


def _table(readings: Readings, label: str, fields: Mapping[str, str]) -> dict[str, dict[str, float]]:
    rows: dict[str, dict[str, float]] = {}
    for field, series in fields.items():
        for name, value in readings.by(series, label).items():
            rows.setdefault(name, {})[field] = _number(value)
    return rows


def _leaks(explanation: Explanation) -> dict[str, Any]:
    """The verdict with what it is about, and growth per minute of what leaks."""
    leaks: dict[str, Any] = {"verdict": explanation.verdict, "message": message(explanation)}
    if explanation.time_left is not None:
        leaks["time_to_limit_seconds"] = explanation.time_left._asdict()
    if explanation.leaks:
        leaks["growth_per_minute"] = _nested({leak.component: leak.per_minute for leak in explanation.leaks})
    return leaks


def _alert(leak: Leak) -> ExceededLimit:
    """The leak as the rules alert it."""
    severity = "critical" if leak.component.resource == "memory" and leak.reason == "growth" else "warning"
    if leak.reason == "bound":
        return ExceededLimit(severity, "leak", *leak.component, leak.amount, leak.bound or 0.0)
    if leak.reason == "graphs":
        return ExceededLimit(severity, "graphs", *leak.component, leak.amount, 0.0)
    return ExceededLimit(severity, "leak", *leak.component, leak.per_minute, 0.0)


def _nested(growth: Mapping[Component, float | None]) -> dict[str, dict[str, float]]:
    nested: dict[str, dict[str, float]] = {}
    for component, rate in growth.items():
        if rate is not None:
            nested.setdefault(component.resource, {})[component.name] = round(rate, 6)
    return nested


def _numbers(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


def landing_page(status: Mapping[str, Any], *, problem: str | None = None) -> str:
    """Return the page as HTML, from the JSON of `/performance_status`; or with the problem instead."""
    trainer, leaks = status.get("trainer", {}).get("trainer", "trainer"), status.get("leaks", {})
    lines = [problem or f"Training: {status.get('training', 'unknown')}"]
    if "verdict" in leaks:
        lines.append(f"Verdict: {labelled(leaks['verdict'], leaks.get('message', ''))}")
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in lines)
    links = "".join(
        f'<tr><th><a href="{path}"><code>GET {path}</code></a></th><td>{what}</td></tr>'
        for path, what in _LINKS
    )
    links += "<tr><th><code>POST /force_cleanup</code></th><td>clean up now (needs the token)</td></tr>"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(trainer)} - heapwatch</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(trainer)}</h1>
{paragraphs}
<table>{links}</table>
</body>
</html>
"""
