"""What a scrape, an import and a reading from outside cost."""

from __future__ import annotations

import gzip
import subprocess
import sys
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

import psutil
from prometheus_client import CollectorRegistry, Gauge, generate_latest

import heapwatch
from benchmarks.measure import Report, Table, interleaved, milliseconds

_IMPORTS = ("prometheus_client", "psutil", "heapwatch", "flask", "fastapi", "wandb", "tensorboard")
_PROGRAM = """
import os, sys
def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
before = resident()
try:
    __import__(sys.argv[1])
except ImportError:
    sys.exit(3)
print(resident() - before)
"""


def run() -> Report:
    registry = CollectorRegistry()
    gauge = Gauge("series", "", ["number"], registry=registry)
    for number in range(1000):
        gauge.labels(str(number)).set(number)
    with heapwatch.start("benchmark", port=0, interval=3600.0) as watch:
        watch.entities("food_sources", lambda: 3)
        watch.step()
        exposition = watch._exporter.exposition
        series = sum(len(family.samples) for family in exposition.collect())
        cost = interleaved(
            {
                "`generate_latest`, 1000 series": lambda: generate_latest(registry),
                "the same, with gzip": lambda: gzip.compress(generate_latest(registry)),
                f"heapwatch, all {series} series of a small trainer": lambda: list(exposition.collect()),
            },
            15,
        )
    scrape = Table("A scrape", "what | milliseconds", [[name, milliseconds(s)] for name, s in cost.items()])
    imports, missing = _imports()
    return Report([scrape, imports, _outside()], [], missing)


def _imports() -> tuple[Table, list[str]]:
    table, missing = Table("Imports", "module | MiB of resident memory"), []
    for module in _IMPORTS:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, module], capture_output=True, text=True, check=False
        )
        if done.returncode:
            missing.append(f"{module} (not installed)")
        else:
            table.rows.append([module, f"{int(done.stdout) / 2**20:.1f}"])
    return table, missing


def _outside() -> Table:
    context = get_context("spawn")
    event = context.Event()
    workers: list[BaseProcess] = [context.Process(target=event.wait, daemon=True) for _ in range(16)]
    for worker in workers:
        worker.start()
    me = psutil.Process()
    ballast = bytearray(500_000_000)
    ballast[::4096] = b"x" * len(ballast[::4096])
    cost = interleaved(
        {
            "USS of a process of 0.5 GB": me.memory_full_info,
            "RSS of it": me.memory_info,
            "RSS of a tree of 16 processes": lambda: [
                child.memory_info() for child in me.children(recursive=True)
            ],
        },
        10,
    )
    event.set()
    for worker in workers:
        worker.join()
    return Table(
        "From outside, by psutil", "what | milliseconds", [[n, milliseconds(s)] for n, s in cost.items()]
    )
