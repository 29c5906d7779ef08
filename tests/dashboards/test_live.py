"""Every query of the pages on a real trainer under a real Prometheus with our rules."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from heapwatch_dashboards.__main__ import ROOT
from tests.dashboards.asking import run
from tests.dashboards.documents import Target, targets
from tests.dashboards.server import prometheus
from tests.support.ports import free_port

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PATIENCE_SECONDS = 240

# What a healthy trainer without GPU and receiver rightly has no data for: a query that names it may be empty.
MAY_BE_EMPTY = {
    r"@ end\(\)": "a limit is near, or far away",
    r"offset 10m": "growth is told after ten minutes",
    r"trainer_growing_path": "nothing grows, or it is too early to say",
    r"machine_": "no exporter of a machine here",
    r"trainer_gpu_|resource=\"gpu_memory\"": "no GPU here",
    r"job, trainer, run, world_size": "not a rank of a distributed run",
    r"heapwatch_receiver_|job:machine_memory|job:stack:|alertmanager_": "no receiver, no Alertmanager",
    r"prometheus_notifications_(sent|errors)": "there is no Alertmanager to notify",
    r"^\(min by \(job, instance\) \(trainer_memory_time_to_limit": "nothing grows towards its limit",
    r"^(?!.*or vector\(0\)).*ALERTS": "nothing fires",
    r"(role|component)=\"worker\"": "no worker processes",
    r"growth_per_cycle": "needs half an hour of cycles",
    r"trainer_cleanup_": "nothing was cleaned up",
    r"job:trainer:lost": "no trainer was lost",
    r"_(failures|missed|errors)_total": "nothing fails",
    r"max_over_time\(timestamp": "nothing was cleaned up",
    r"trainer_buffer_capacity_items.*deriv": "a buffer that is full, or not yet measured long enough",
    r"increase\(": "needs two events in the range",
    r"avg_over_time\(\(+trainer_phase_memory_delta": "no phase gains memory",
    r"deriv\(\(+trainer_progress_total": "needs two cycles",
}


def may_be_empty(target: Target) -> bool:
    return any(re.search(pattern, target.target["expr"]) for pattern in MAY_BE_EMPTY)


@pytest.fixture
def live_url(tmp_path: Path) -> Iterator[str]:
    """Walker, training, scraped and judged every other second."""
    (tmp_path / "targets").mkdir()
    environment = {
        **os.environ,
        "HEAPWATCH_TARGETS_DIR": str(tmp_path / "targets"),
        "HEAPWATCH_TRAINER_PORT": str(free_port()),
        "HEAPWATCH_STATE": str(tmp_path / "state"),
    }
    with (tmp_path / "walker.log").open("w") as log:
        walker = subprocess.Popen(
            [sys.executable, "-m", "examples.walker"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    port = free_port()
    configuration = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
    configuration["rule_files"] = [str(ROOT / "prometheus" / "rules" / "*.yml")]
    configuration["alerting"] = {}
    configuration["scrape_configs"] = [
        {
            "job_name": "trainer",
            "file_sd_configs": [{"files": [str(tmp_path / "targets" / "*.json")], "refresh_interval": "1s"}],
        },
        {
            "job_name": "stack",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"service": "prometheus"}}],
        },
    ]
    try:
        with prometheus(tmp_path / "data", yaml.safe_dump(configuration), port) as url:
            yield url
    finally:
        walker.terminate()
        walker.wait(timeout=30)


def test_every_query_has_data_that_a_healthy_trainer_can_have(live_url: str) -> None:
    waiting = [target for target in targets() if not may_be_empty(target)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while waiting and time.monotonic() < deadline:
        waiting = [target for target in waiting if not run(live_url, target, hours=0.25)]
        time.sleep(1)
    assert [str(target) for target in waiting] == []
