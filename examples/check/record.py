"""Records a running example once a second, to be replayed as one scrape in 15 seconds."""

import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.leaks.scenario import Scenario
from examples.check.plan import Run
from examples.common.leaks import leak_file, write
from tests.support.ports import free_port

FASTER = 15  # one second of recording stands for one scrape interval
INTERVAL = 5 / FASTER  # seconds between samples: the default, as much faster
START_SECONDS = 120.0
END_SECONDS = 120.0
MOMENTS = ("process_start_time_seconds", "trainer_last_progress_timestamp_seconds")


def record(run: Run, folder: Path, healthy_seconds: int, seconds: int) -> Scenario:
    """Run the example for `seconds`, its leak switched on after `healthy_seconds`, and record its series.

    Args:
        run: the example and its leak.
        folder: for its leak switches, its discovery target and its log.
        healthy_seconds: how long it runs before it leaks.
        seconds: how long it runs in all.

    Raises:
        RuntimeError: the example did not start, ended early (the end of its log is in the message), or
            would not end.

    """
    series: dict[str, list[float | None]] = {}
    log = folder / "log"
    with _running(run, folder, log) as (url, process):
        started_at, started = time.time(), time.monotonic()
        for second in range(seconds):
            if run.leak and second == healthy_seconds:
                write(leak_file(run.example, folder), {run.leak: run.rate})
            time.sleep(max(0.0, started + second - time.monotonic()))
            if process.poll() is not None:
                raise RuntimeError(f"{run.id} ended after {second} s:\n{log.read_text()[-2000:]}")
            for name, value in _scrape(url, started_at).items():
                values = series.setdefault(name, [])
                values += [None] * (second - len(values))
                values.append(value)
    for values in series.values():
        values += [None] * (seconds - len(values))
    onset = healthy_seconds * FASTER / 60
    truth = [
        {"resource": resource, "component": component, "onset_min": onset} for resource, component in run.must
    ]
    return Scenario(run.id, series, truth)


@contextmanager
def _running(run: Run, folder: Path, log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The example as a process, and where it serves its metrics."""
    port = free_port()
    environment = os.environ | {
        "HEAPWATCH_STATE": str(folder),
        "HEAPWATCH_TARGETS_DIR": str(folder / "targets"),
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        "-m",
        f"examples.{run.example}",
        f"--port={port}",
        f"--interval={INTERVAL:.3f}",
    ]
    with log.open("w") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        _wait(url, process, log)
        yield url, process
    finally:
        process.terminate()
        try:
            process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise RuntimeError(f"{run.id} did not end within {END_SECONDS:.0f} s of SIGTERM") from None


def _scrape(url: str, started_at: float) -> dict[str, float]:
    """One sample of every series by selector; moments count from the start of the recording, and as fast."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            text = answer.read().decode()
    except (OSError, HTTPException):
        return {}
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            left_out = sample.name.startswith("python_") or sample.name.endswith("_created")
            if left_out or math.isnan(sample.value):
                continue
            labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
            value = float(sample.value)
            found[f"{sample.name}{{{labels}}}"] = (
                (value - started_at) * FASTER if sample.name in MOMENTS else value
            )
    return found


def _wait(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except (OSError, HTTPException):
            time.sleep(0.2)
    raise RuntimeError(f"no metrics at {url} after {START_SECONDS:.0f} s:\n{log.read_text()[-2000:]}")
