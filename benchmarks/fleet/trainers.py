"""The endpoints of many trainers in one cheap process: realistic series, a leak that can be switched on.

    python -m benchmarks.fleet.trainers COUNT TARGETS_FILE

Each trainer has a loopback port of its own, all in one target file. `GET /leak` on any of them makes it leak
until it is asked to clean up. The process ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import resource
import sys
import time
from pathlib import Path

RESIDENT_BYTES = 4e9
LIMIT_BYTES = 64e9
LEAK_BYTES_PER_SECOND = 1e9  # over the critical limit, 93 % of what it could hold, within a minute
NOISE = 0.01
STEPS_PER_SECOND = 200.0
CLEANS = ("trainer_cleanup_functions", "trainer_cleanup_ready")

# The words of a verdict; a trainer is healthy until it leaks.
WORDS = ("healthy", "warm-up", "filling", "too early", "growing", "will not fit", "leak")
LEAKS = "trainer_leak", {"resource": "memory", "component": "trainer", "reason": "growth"}
_COLLECTORS = ("process", "gpu", "bodies", "entities", "events", "buffers", "objects", "sizes")

# A trainer with a world, a replay buffer, a population, workers, a GPU, and what its exporter says of itself.
EVERYTHING: list[tuple[str, dict[str, str]]] = [  # metric and labels
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
        ("trainer_judged_timestamp_seconds", "", ("",)),
        ("trainer_memory_verdict", "verdict", WORDS),
        ("trainer_memory_growth_bytes_per_minute", "", ("",)),
    ]
    for value in values
]


class Trainer:
    """One endpoint.

    Args:
        rank: its number in the fleet, which seeds its noise.

    """

    def __init__(self, rank: int) -> None:
        self._random = random.Random(rank)
        self._started = time.time() - 3600 * self._random.random()
        self._leaking_since: float | None = None
        self.cleanups = 0
        shape = [
            *EVERYTHING,
            ("trainer_info", {"trainer": f"fleet-{rank}", "title": f"fleet-{rank}, 11-24 10:00"}),
            *((name, {}) for name in CLEANS),
        ]
        self._lines = [self._line(metric, labels) for metric, labels in shape]

    def leak(self) -> None:
        """Begin to leak."""
        self._leaking_since = time.time()

    def clean_up(self, request: dict[str, object]) -> dict[str, object]:
        """Give up what leaked; the answer of a real trainer."""
        before, self._leaking_since = self._resident(), None
        self.cleanups += 1
        after = self._resident()
        return {
            "status": "done",
            "request_id": request.get("request_id", ""),
            "before": {"resident_memory_bytes": before},
            "after": {"resident_memory_bytes": after},
            "freed": {"resident_memory_bytes": before - after},
            "removed": {"history": 1000},
            "duration_seconds": 0.1,
        }

    def metrics(self) -> str:
        """The exposition of this moment."""
        now = time.time()
        leaks = self._leaking_since is not None
        values = {
            "healthy": f"{not leaks:d}",
            "leak": f"{leaks:d}",
            "resident": f"{self._resident():.0f}",
            "now": f"{now:.3f}",
            "steps": f"{STEPS_PER_SECOND * (now - self._started):.0f}",
            "generations": f"{(now - self._started) // 60:.0f}",
            "level": f"{20 + self._random.randrange(3)}",
        }
        lines = [*self._lines, self._line(*LEAKS)] if leaks else self._lines
        return "\n".join(line % values for line in lines) + "\n"

    def _resident(self) -> float:
        leaked = 0.0 if self._leaking_since is None else time.time() - self._leaking_since
        noise = 1 + NOISE * math.sin(time.time() / 37 + self._started) * self._random.random()
        return min(RESIDENT_BYTES * noise + LEAK_BYTES_PER_SECOND * leaked, 0.99 * LIMIT_BYTES)

    def _line(self, metric: str, labels: dict[str, str]) -> str:
        text = ",".join(f'{name}="{value}"' for name, value in labels.items() if name)
        return f"{metric}{{{text}}} {self._value(metric, labels)}"

    def _value(self, metric: str, labels: dict[str, str]) -> str:
        if metric == "trainer_process_resident_memory_bytes" and labels.get("role") == "trainer":
            return "%(resident)s"
        if metric == "process_start_time_seconds":
            return f"{self._started:.3f}"
        if metric in ("trainer_last_progress_timestamp_seconds", "trainer_judged_timestamp_seconds"):
            return "%(now)s"
        if metric == "trainer_memory_verdict":
            return f"%({labels['verdict']})s" if labels["verdict"] in ("healthy", "leak") else "0"
        if metric == "trainer_leak":
            return f"{LEAK_BYTES_PER_SECOND:.0f}"
        if metric == "trainer_progress_total":
            return "%(generations)s" if labels.get("unit") == "generation" else "%(steps)s"
        if metric == "trainer_memory_limit_bytes":
            return f"{LIMIT_BYTES:.0f}"
        if metric.startswith(("trainer_exporter", "trainer_phase_memory_delta", "trainer_memory_growth")):
            return "1" if metric.endswith("interval_seconds") else "0"
        if metric in (*CLEANS, "trainer_info"):
            return "1"
        if "bytes" in metric:
            return f"{(0.4e9 if labels else 4e9) * (9 if 'capacity' in metric else 1):.0f}"
        return "100" if "capacity" in metric else "%(level)s"


async def serve(trainer: Trainer) -> asyncio.Server:
    """Serve one trainer on a free loopback port."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                first, *fields = head.split("\r\n")
                length = next((int(f[15:]) for f in fields if f.lower().startswith("content-length:")), 0)
                body = await reader.readexactly(length)
                text = _reply(trainer, first, body).encode()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                    b"Content-Length: %d\r\n\r\n" % len(text) + text
                )
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", 0)


def _reply(trainer: Trainer, first: str, body: bytes) -> str:
    path = first.split(" ")[1]
    if path == "/force_cleanup":
        return json.dumps(trainer.clean_up(json.loads(body or b"{}")))
    if path == "/leak":
        trainer.leak()
    return str(trainer.cleanups) if path in ("/leak", "/cleanups") else trainer.metrics()


async def _head(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return ""


async def main(count: int, file: Path) -> None:
    """Serve `count` trainers until standard input ends."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    servers = [await serve(Trainer(rank)) for rank in range(count)]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    targets = [{"targets": [f"127.0.0.1:{port}" for port in ports], "labels": {}}]
    partial = file.with_suffix(".tmp")
    partial.write_text(json.dumps(targets))
    partial.replace(file)
    print(json.dumps(ports), flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()
    await asyncio.sleep(0)  # what was accepted already begins, and is cancelled with the rest


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2])))
