"""Every query of every panel on a real trainer, scraped by a real Prometheus with the project's own rules."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
import yaml
from heapwatch_dashboards.__main__ import ROOT

from tests.dashboards.asking import run
from tests.dashboards.documents import Target, targets
from tests.dashboards.server import free_port, prometheus

PATIENCE_SECONDS = 120

# What a healthy trainer without GPU and receiver rightly has no data for: a query that names it may be empty.
MAY_BE_EMPTY = {
    r"trainer_gpu_|resource=\"gpu_memory\"": "no GPU here",
    r"heapwatch_receiver_|alertmanager_": "neither receiver nor Alertmanager runs",
    r"prometheus_notifications_(sent|errors)": "there is no Alertmanager to notify",
    r"job:trainer_leak:share|time_to_limit_seconds": "nothing leaks and nothing grows towards its limit",
    r"^(?!.*or vector\(0\)).*ALERTS": "nothing fires",
    r"role=\"worker\"": "no worker processes",
    r"generation\"\} > last_over_time": "needs a cycle that ended a step ago",
    r"growth_per_cycle": "needs half an hour of cycles",
    r"trainer_cleanup_": "nothing was cleaned up",
    r"_(failures|missed|errors)_total": "nothing fails",
    r"max_over_time\(timestamp": "nothing was cleaned up",
    r"trainer_buffer_capacity_items.*deriv": "a buffer that is full, or not yet measured long enough",
    r"increase\(": "needs two events in the range",
}


def may_be_empty(target: Target) -> bool:
    return any(re.search(pattern, target.target["expr"]) for pattern in MAY_BE_EMPTY)


@pytest.fixture(scope="module")
def live_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Walker, training, scraped and judged every second."""
    folder = tmp_path_factory.mktemp("live")
    (folder / "targets").mkdir()
    environment = {
        **os.environ,
        "HEAPWATCH_TARGETS_DIR": str(folder / "targets"),
        "HEAPWATCH_TRAINER_PORT": str(free_port()),
        "HEAPWATCH_STATE": str(folder / "state"),
    }
    with (folder / "walker.log").open("w") as log:
        walker = subprocess.Popen(
            [sys.executable, "-m", "examples.walker"], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    port = free_port()
    configuration = yaml.safe_load((ROOT / "prometheus" / "prometheus.yml").read_text())
    configuration["global"] = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    configuration["rule_files"] = [str(ROOT / "prometheus" / "rules" / "*.yml")]
    configuration["alerting"] = {}
    configuration["scrape_configs"] = [
        {
            "job_name": "trainer",
            "file_sd_configs": [{"files": [str(folder / "targets" / "*.json")], "refresh_interval": "1s"}],
        },
        {
            "job_name": "stack",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"], "labels": {"service": "prometheus"}}],
        },
    ]
    try:
        with prometheus(folder / "data", yaml.safe_dump(configuration), port) as url:
            yield url
    finally:
        walker.terminate()
        walker.wait(timeout=30)


def test_every_panel_has_data_or_says_why_not(live_url: str) -> None:
    waiting = [target for target in targets() if not may_be_empty(target)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while waiting and time.monotonic() < deadline:
        waiting = [target for target in waiting if not run(live_url, target, hours=0.25)]
        time.sleep(1)
    assert [str(target) for target in waiting] == []


def test_what_may_be_empty_has_words_for_it() -> None:
    silent = {str(target) for target in targets() if may_be_empty(target)} & {
        str(target)
        for target in targets()
        if target.panel["fieldConfig"]["defaults"]["noValue"] == "No data"
        and len(target.panel["targets"]) == 1
    }
    assert silent == set()
