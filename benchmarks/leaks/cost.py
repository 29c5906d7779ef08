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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.leaks.remote_write import Sample, push

SCRAPE_SECONDS = 15
HISTORY_SECONDS = 110 * 60  # as much as the longest window looks back on, and less than a head block
LEAKING = 25  # one trainer in so many

# What a trainer exposes: the level it becomes, its label, and the label's values.
Exposed = dict[str, tuple[str, str, list[str]]]

# A trainer with a world, a replay buffer, a population, workers and a GPU.
EVERYTHING: Exposed = {
    "trainer_process_resident_memory_bytes": ("memory", "role", ["trainer", "worker"]),
    "trainer_gpu_memory_allocated_bytes": ("gpu_memory", "device", ["0"]),
    "trainer_bodies": ("bodies", "type", ["static", "dynamic", "terrain", "agent", "unknown"]),
    "trainer_entities": ("entities", "type", ["food_sources"]),
    "trainer_event_list_items": ("events", "list", ["consumption", "death", "predation"]),
    "trainer_event_list_capacity_items": ("", "list", ["death"]),
    "trainer_buffer_items": ("buffer", "buffer", ["replay"]),
    "trainer_buffer_bytes": ("", "buffer", ["replay"]),
    "trainer_buffer_capacity_items": ("", "buffer", ["replay"]),
    "trainer_buffer_capacity_bytes": ("", "buffer", ["replay"]),
    "trainer_objects": ("objects", "type", ["DDPGAgent", "TradingEnvironment", "Tensor"]),
    "trainer_object_size_bytes": ("object_size", "object", ["policy.state_dict", "optimizer.state_dict"]),
    "trainer_phase_end_resident_memory_bytes": ("", "phase", ["train", "evaluate"]),
    "trainer_phase_memory_delta_bytes": ("", "phase", ["train", "evaluate"]),
    "trainer_progress_total": ("", "unit", ["step", "generation"]),
    "trainer_memory_limit_bytes": ("", "", [""]),
    "trainer_last_progress_timestamp_seconds": ("", "", [""]),
    "process_start_time_seconds": ("", "", [""]),
}
# A training loop with a replay buffer and two watched classes.
SMALL: Exposed = {
    **{
        name: what
        for name, what in EVERYTHING.items()
        if not name.startswith(
            ("trainer_gpu", "trainer_bodies", "trainer_entities", "trainer_event", "trainer_object")
        )
    },
    "trainer_process_resident_memory_bytes": ("memory", "role", ["trainer"]),
    "trainer_objects": ("objects", "type", ["DQN", "Tensor"]),
}


def levels(exposed: Exposed) -> int:
    """How many watched levels a trainer has."""
    return sum(len(values) for resource, _, values in exposed.values() if resource)


def _samples(exposed: Exposed, trainers: int, second: float, start: float) -> Iterator[Sample]:
    """Every series of every trainer at one moment, and the recorded ones that the rules look back on."""
    for rank in range(trainers):
        who = {"job": "trainer", "instance": f"127.0.0.1:{20000 + rank}"}
        rise = 1 + (second - start) * 1e-4 * (rank % LEAKING == 0)
        for name, (resource, label, values) in exposed.items():
            for number, text in enumerate(values):
                level = (0.4e9 if "bytes" in name else 20) * (9 if "capacity" in name else 1 + number)
                leaks = number == 0 and resource in ("memory", "objects") and rank % LEAKING == 0
                value = level * (rise if leaks else 1)
                if name == "process_start_time_seconds":
                    value = start
                elif name == "trainer_memory_limit_bytes":
                    value = 64e9  # no forecast fires: an alert's text costs more than its rule
                elif name in ("trainer_progress_total", "trainer_last_progress_timestamp_seconds"):
                    value = second - start if "total" in name else second
                yield {"__name__": name, **who, **({label: text} if label else {})}, value
                if resource:
                    which = {**who, "resource": resource, "component": text}
                    for recorded in ("level", "held", "high_water"):
                        yield {"__name__": f"job:trainer_resource:{recorded}", **which}, value
                    if leaks:
                        for recorded in ("gain", "burst"):
                            yield {"__name__": f"job:trainer_resource:{recorded}", **which}, level * 3e-3
        yield {"__name__": "job:trainer_process:start", **who}, start


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
    rules: list[Path], exposed: Exposed, trainers: int = 50, evaluations: int = 8
) -> dict[str, float]:
    """Seconds per trainer and evaluation, by rule group: the best of some, as other work only adds.

    As in the stack, a scrape comes in 15 s and an evaluation in 30, but for those that are measured, which
    follow each other twice as fast.
    """
    with tempfile.TemporaryDirectory() as name, _prometheus(Path(name)) as (url, server):
        start = time.time() - HISTORY_SECONDS
        at, evaluated = start, False
        while at < time.time():
            evaluated = not evaluated
            push(url, (s for s in _samples(exposed, trainers, at, start) if evaluated or _scraped(s)), at)
            at += SCRAPE_SECONDS
        config = {
            "global": {"evaluation_interval": f"{SCRAPE_SECONDS}s"},
            "rule_files": [str(path.resolve()) for path in rules],
        }
        (Path(name) / "prometheus.yml").write_text(json.dumps(config))
        server.send_signal(signal.SIGHUP)
        best: dict[str, float] = {}
        seen: dict[str, set[str]] = {}
        while not seen or min(map(len, seen.values())) < evaluations + 1:
            time.sleep(1)
            if at <= time.time():
                push(url, filter(_scraped, _samples(exposed, trainers, at, start)), at)
                at += SCRAPE_SECONDS
            for group in _get(f"{url}/api/v1/rules")["groups"]:
                if group["lastEvaluation"].startswith("0001"):
                    continue
                moments = seen.setdefault(group["name"], set())
                moments.add(group["lastEvaluation"])
                if len(moments) > 1:  # the first reads cold
                    best[group["name"]] = min(best.get(group["name"], 1e9), group["evaluationTime"])
        return {group: seconds / trainers for group, seconds in best.items()}


def _scraped(sample: Sample) -> bool:
    return ":" not in sample[0]["__name__"]
