"""What one evaluation of the rules costs per trainer, by Prometheus' own account."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from benchmarks.leaks.remote_write import Sample, push
from benchmarks.leaks.scenario import LABEL, Scenario

SCRAPE_SECONDS = 15
MEASURED_SECONDS = 5  # between the evaluations that are measured
HISTORY_SECONDS = 110 * 60  # as much as the longest window looks back on, and less than a head block
LEAKING = 25  # one trainer in so many
_COLD = 3  # evaluations until each rule has read what those before it record
_LEAKING_LABELS = ({"role": "trainer"}, {"type": "Tensor"})

Series = tuple[str, dict[str, str]]  # metric and labels
Shape = list[Series]  # what a trainer exposes

# The metrics that become watched levels, and the resource of each.
LEVELS = {
    "trainer_process_resident_memory_bytes": "memory",
    "trainer_gpu_memory_allocated_bytes": "gpu_memory",
    "trainer_bodies": "bodies",
    "trainer_entities": "entities",
    "trainer_event_list_items": "events",
    "trainer_buffer_items": "buffer",
    "trainer_objects": "objects",
    "trainer_object_size_bytes": "object_size",
}
_COLLECTORS = ("process", "gpu", "bodies", "entities", "events", "buffers", "objects", "sizes")

# A trainer with a world, a replay buffer, a population, workers, a GPU, and what its exporter says of itself.
EVERYTHING: Shape = [
    (metric, {label: value} if label else {})
    for metric, label, values in [
        ("trainer_process_resident_memory_bytes", "role", ("trainer", "worker")),
        ("trainer_gpu_memory_allocated_bytes", "device", ("0",)),
        ("trainer_gpu_memory_reserved_bytes", "device", ("0",)),
        ("trainer_bodies", "type", ("static", "dynamic", "terrain", "agent", "unknown")),
        ("trainer_entities", "type", ("food_sources",)),
        ("trainer_event_list_items", "list", ("consumption", "death", "predation")),
        ("trainer_event_list_capacity_items", "list", ("death",)),
        ("trainer_buffer_items", "buffer", ("replay",)),
        ("trainer_buffer_bytes", "buffer", ("replay",)),
        ("trainer_buffer_capacity_items", "buffer", ("replay",)),
        ("trainer_buffer_capacity_bytes", "buffer", ("replay",)),
        ("trainer_objects", "type", ("DDPGAgent", "TradingEnvironment", "Tensor")),
        ("trainer_object_size_bytes", "object", ("policy.state_dict", "optimizer.state_dict")),
        ("trainer_phase_end_resident_memory_bytes", "phase", ("train", "evaluate")),
        ("trainer_phase_memory_delta_bytes", "phase", ("train", "evaluate")),
        ("trainer_progress_total", "unit", ("step", "generation")),
        ("trainer_memory_limit_bytes", "", ("",)),
        ("trainer_last_progress_timestamp_seconds", "", ("",)),
        ("trainer_exporter_sample_age_seconds", "collector", _COLLECTORS),
        ("trainer_exporter_sample_interval_seconds", "collector", _COLLECTORS),
        ("trainer_exporter_collect_errors_total", "collector", _COLLECTORS),
        ("process_start_time_seconds", "", ("",)),
        ("up", "", ("",)),
        ("scrape_duration_seconds", "", ("",)),
    ]
    for value in values
]


def shapes(scenarios: Iterable[Scenario]) -> list[Shape]:
    """What each trainer of the scenarios exposes."""
    found: list[Shape] = []
    for scenario in scenarios:
        trainers: dict[str, Shape] = {}
        for selector in scenario.series:
            labels = dict(LABEL.findall(selector))
            trainers.setdefault(labels.pop("instance", ""), []).append((selector.partition("{")[0], labels))
        found += trainers.values()
    return found


def levels(shape: Shape) -> int:
    """How many watched levels a trainer has."""
    return sum(metric in LEVELS for metric, _ in shape)


def _value(metric: str, second: float, start: float) -> float:
    """A level that stays, or a clock that goes on."""
    if metric == "process_start_time_seconds":
        return start
    if metric == "trainer_last_progress_timestamp_seconds":
        return second
    if metric == "trainer_progress_total":
        return second - start
    if metric == "trainer_memory_limit_bytes":
        return 64e9  # no forecast fires: an alert's text costs more than its rule
    if metric.startswith(("trainer_exporter", "scrape", "up")):
        return float(metric == "up")
    return (0.4e9 if "bytes" in metric else 20.0) * (9 if "capacity" in metric else 1)


def _samples(fleet: Sequence[Shape], second: float, start: float) -> Iterator[Sample]:
    """Every series of every trainer at one moment, and the recorded ones that the rules look back on."""
    for rank, shape in enumerate(fleet):
        who = {"job": "trainer", "instance": f"127.0.0.1:{20000 + rank}"}
        for metric, labels in shape:
            level = _value(metric, second, start)
            leaks = rank % LEAKING == 0 and labels in _LEAKING_LABELS
            value = level * (1 + (second - start) * 1e-4) if leaks else level
            yield {"__name__": metric, **who, **labels}, value
            if metric in LEVELS:
                which = {**who, "resource": LEVELS[metric], "component": next(iter(labels.values()))}
                for recorded in ("level", "held", "high_water"):
                    yield {"__name__": f"job:trainer_resource:{recorded}", **which}, value
                if leaks:
                    for recorded in ("gain", "burst"):
                        yield {"__name__": f"job:trainer_resource:{recorded}", **which}, level * 3e-3
        yield {"__name__": "job:trainer_process:start", **who}, start
        if any(metric == "trainer_buffer_capacity_bytes" for metric, _ in shape):
            yield {"__name__": "job:trainer_memory:bounded_bytes", **who}, 0.4e9
        whole = {**who, "resource": "memory", "component": "all"}
        yield {"__name__": "job:trainer_forecast:committed_bytes", **whole}, 0.4e9
        if rank % LEAKING == 0:
            yield {"__name__": "job:trainer_forecast:floor_growth_per_second", **whole}, 1e4


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)["data"]


@contextmanager
def _prometheus(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A server of our own on a free port, with no rules yet. Raises FileNotFoundError without prometheus."""
    binary = shutil.which("prometheus")
    if binary is None:
        raise FileNotFoundError("prometheus is not on PATH")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (folder / "prometheus.yml").write_text("{}")
    server = subprocess.Popen(
        [
            binary,
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={address}",
            "--web.enable-remote-write-receiver",
            "--log.level=error",
        ]
    )
    try:
        url = f"http://{address}"
        while True:
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()
                break
            except (urllib.error.URLError, ConnectionError):
                if server.poll() is not None:
                    raise RuntimeError("prometheus did not start") from None
                time.sleep(0.2)
        yield url, server
    finally:
        server.terminate()
        server.wait()


def measure(
    rules: list[Path], shapes: Sequence[Shape], trainers: int = 50, evaluations: int = 20
) -> dict[str, float]:
    """Seconds per trainer and evaluation, by rule group: the best of some, as other work only adds.

    As in the stack, a scrape comes in 15 s and an evaluation in 30, but for those that are measured, which
    follow each other faster. Each trainer has one of the `shapes`, in turn.
    """
    fleet = list(islice(cycle(shapes), trainers))
    with tempfile.TemporaryDirectory() as name, _prometheus(Path(name)) as (url, server):
        start = time.time() - HISTORY_SECONDS
        at, evaluated = start, False
        while at < time.time():
            evaluated = not evaluated
            push(url, (s for s in _samples(fleet, at, start) if evaluated or _scraped(s)), at)
            at += SCRAPE_SECONDS
        config = {
            "global": {"evaluation_interval": f"{MEASURED_SECONDS}s"},
            "rule_files": [str(path.resolve()) for path in rules],
        }
        (Path(name) / "prometheus.yml").write_text(json.dumps(config))
        server.send_signal(signal.SIGHUP)
        best: dict[str, float] = {}
        seen: dict[str, set[str]] = {}
        while not seen or min(map(len, seen.values())) < evaluations + _COLD:
            time.sleep(1)
            if at <= time.time():
                push(url, filter(_scraped, _samples(fleet, at, start)), at)
                at += SCRAPE_SECONDS
            for group in _get(f"{url}/api/v1/rules")["groups"]:
                if group["lastEvaluation"].startswith("0001"):
                    continue
                moments = seen.setdefault(group["name"], set())
                moments.add(group["lastEvaluation"])
                if len(moments) > _COLD:
                    best[group["name"]] = min(best.get(group["name"], 1e9), group["evaluationTime"])
        return {group: seconds / trainers for group, seconds in best.items()}


def _scraped(sample: Sample) -> bool:
    return ":" not in sample[0]["__name__"]
