"""A trainer that is killed is alerted with its last known figures, and one that ends normally is not."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from heapwatch import lost
from tests.e2e.running import MINUTES, Stack, wait_for

pytestmark = pytest.mark.slow

TRAINER = """
import sys, time, heapwatch
watch = heapwatch.start(sys.argv[1], port=0)
print(watch.server.port, flush=True)
sys.stdin.readline()
"""


@contextmanager
def trainer(stack: Stack, name: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A trainer and its instance; its program ends with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", TRAINER, name], env=stack.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            yield process, f"127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


def alerts(stack: Stack, instance: str) -> list[dict[str, str]]:
    """Annotations of the firing TrainerDown of an instance, as Alertmanager has them."""
    url = stack.settings.url(stack.settings.ports.alertmanager) + "/api/v2/alerts"
    answer = httpx.get(url, params={"filter": "alertname=TrainerDown"}, timeout=30).json()
    return [one["annotations"] for one in answer if one["labels"]["instance"] == instance]


@pytest.mark.timeout(20 * MINUTES)
def test_a_killed_trainer_is_alerted_and_one_that_ends_is_not(stack: Stack) -> None:
    loop = stack.loop()
    with trainer(stack, "killed") as (killed, at), trainer(stack, "ended") as (ended, there):
        for instance in (at, there):
            wait_for(
                "its memory",
                lambda instance=instance: loop.query(
                    f'job:trainer_known:memory_bytes{{instance="{instance}"}}'
                ),
                3 * MINUTES,
            )
        killed.send_signal(signal.SIGKILL)
        ended.communicate("end\n", timeout=60)
        # Two minutes, and what a loaded machine takes.
        (said,) = wait_for("the alert", lambda: alerts(stack, at), 4 * MINUTES)
    assert said["summary"] == f"killed ({at}): {lost.UNKNOWN}"
    assert "B of memory" in said["description"]
    assert "verdict: " in said["description"]
    wait_for("its row", lambda: loop.query(f'job:trainer_verdict:state{{instance="{at}"}} == 5'), 2 * MINUTES)
    (known,) = loop.query(f'job:trainer_known:info{{instance="{at}"}}')
    assert known[0]["trainer"] == "killed"
    # The one that ended in the same second has no alert, no record and no row.
    assert alerts(stack, there) == []
    names = {one.trainer for one in lost.read(Path(stack.settings.targets) / lost.FOLDER)}
    assert "killed" in names
    assert "ended" not in names
    wait_for(
        "no row", lambda: not loop.query(f'job:trainer_verdict:state{{instance="{there}"}}'), 2 * MINUTES
    )
