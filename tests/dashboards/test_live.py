"""Every query and panel on a real trainer, healthy and leaking, under a real Prometheus with our rules."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser, Locator, Page, expect

from examples.common.leaks import leak_file, write
from heapwatch_dashboards.__main__ import ROOT
from tests.dashboards.asking import ask, run
from tests.dashboards.browser import chromium, opened, stretch, unroll
from tests.dashboards.documents import DOCUMENTS, Target, panels, targets
from tests.dashboards.server import prometheus
from tests.dashboards.viewer.conftest import running_viewer
from tests.support.ports import free_port

# A module's first test starts all that runs here, and waits until an alert fires.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PATIENCE_SECONDS = 240
# A page that is complete shows this at once, or was asked a scrape too early: it is opened again.
SHOWN_MILLISECONDS = 5000
RANGE = "from=now-15m&to=now&refresh="

# What a healthy trainer without GPU and receiver rightly has no data for: a query that names it may be empty.
MAY_BE_EMPTY = {
    r"@ end\(\)": "a limit is near, or far away",
    r"offset 10m": "growth is told after ten minutes",
    r"trainer_growing_path": "nothing grows, or it is too early to say",
    r"trainer_gpu_|resource=\"gpu_memory\"": "no GPU here",
    r"job, trainer, run, world_size": "not a rank of a distributed run",
    r"heapwatch_receiver_|job:machine_memory|job:stack:|alertmanager_": "no receiver, no Alertmanager",
    r"prometheus_notifications_(sent|errors)": "there is no Alertmanager to notify",
    r"job:trainer_leak:share|time_to_limit_seconds.* < \d+": "nothing leaks or grows towards its limit",
    r"^(?!.*or vector\(0\)).*ALERTS": "nothing fires",
    r"(role|component)=\"worker\"": "no worker processes",
    r"generation\"\} > last_over_time": "needs a cycle that ended a step ago",
    r"growth_per_cycle": "needs half an hour of cycles",
    r"trainer_cleanup_": "nothing was cleaned up",
    r"job:trainer:lost": "no trainer was lost",
    r"_(failures|missed|errors)_total": "nothing fails",
    r"max_over_time\(timestamp": "nothing was cleaned up",
    r"trainer_buffer_capacity_items.*deriv": "a buffer that is full, or not yet measured long enough",
    r"increase\(": "needs two events in the range",
    r"avg_over_time\(trainer_phase_memory_delta": "no phase gains memory",
    r"deriv\(trainer_progress_total": "needs two cycles",
}


def may_be_empty(target: Target) -> bool:
    return any(re.search(pattern, target.target["expr"]) for pattern in MAY_BE_EMPTY)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all that runs here keeps its files."""
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def live_url(folder: Path) -> Iterator[str]:
    """Walker, training, scraped and judged every other second."""
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
    configuration["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
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


@pytest.fixture(scope="module")
def viewer_url(live_url: str) -> Iterator[str]:
    """The built-in viewer of it."""
    with running_viewer(live_url) as url:
        yield url


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1500, "height": 1000})
    yield page
    page.close()


def test_every_panel_has_data_or_says_why_not(live_url: str) -> None:
    waiting = [target for target in targets() if not may_be_empty(target)]
    deadline = time.monotonic() + PATIENCE_SECONDS
    while waiting and time.monotonic() < deadline:
        waiting = [target for target in waiting if not run(live_url, target, hours=0.25)]
        time.sleep(1)
    assert [str(target) for target in waiting] == []


@pytest.fixture(scope="module")
def leaking(live_url: str, folder: Path) -> None:
    """The walker forgets thousands of limbs, and the limits' alert fires."""
    write(leak_file("walker", folder / "state"), {"unknown": 6000.0})
    firing = 'ALERTS{alertstate="firing", resource="bodies"}'
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not ask(live_url, "query", query=firing):
        assert time.monotonic() < deadline, "no alert fires"
        time.sleep(1)
    write(leak_file("walker", folder / "state"), {})


def fleet_shows_the_leak(page: Page) -> None:
    trainers = panel(page, "Trainers by verdict")
    expect(trainers.locator("tbody tr")).to_have_count(1, timeout=SHOWN_MILLISECONDS)
    expect(trainers).to_contain_text("over a limit", timeout=SHOWN_MILLISECONDS)
    expect(panel(page, "Over a limit")).to_contain_text("1", timeout=SHOWN_MILLISECONDS)
    expect(panel(page, "Firing alerts")).to_contain_text("bodies", timeout=SHOWN_MILLISECONDS)


def world_shows_the_leak(page: Page) -> None:
    unknown = panel(page, "Bodies by type").locator("tr", has_text="unknown")
    expect(unknown).to_contain_text(re.compile(r"[5-9]\d\d|K"), timeout=SHOWN_MILLISECONDS)


# The other pages are opened on made-up history, which has more to show: test_browser.py.
SHOW_THE_LEAK = {"heapwatch-fleet": fleet_shows_the_leak, "heapwatch-world": world_shows_the_leak}


@pytest.mark.usefixtures("leaking")
@pytest.mark.parametrize("uid", SHOW_THE_LEAK)
def test_a_leaking_trainers_page_shows_the_leak_and_data_or_why_not(
    page: Page, viewer_url: str, uid: str
) -> None:
    """Every panel has data, or says the sentence that its description explains; a missed scrape may pass."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while faults := list(_faults(page, viewer_url, uid)):
        assert time.monotonic() < deadline, faults


def panel(page: Page, title: str) -> Locator:
    return page.locator(f".panel:has(.panel-title :text-is('{title}'))")


def _faults(page: Page, viewer_url: str, uid: str) -> Iterator[str]:
    try:
        opened(page, f"{viewer_url}/d/{uid}?{RANGE}")
        SHOW_THE_LEAK[uid](page)
        unroll(page)
        stretch(page)
    except AssertionError as late:
        yield str(late)
        return
    yield from page.locator(".panel-error:visible").all_inner_texts()
    for shown in panels(DOCUMENTS[uid]):
        body = page.locator(f"[data-panel='{shown['id']}'] .panel-body")
        says = " ".join(body.locator(".empty").all_inner_texts())
        if says:
            rightly = all(may_be_empty(Target(uid, shown, target)) for target in shown["targets"])
            if not rightly or says != shown["fieldConfig"]["defaults"]["noValue"]:
                yield f"{shown['title']}: {says}"
        elif not body.inner_text().strip() and not body.locator("canvas").count():
            yield f"{shown['title']} shows nothing"
