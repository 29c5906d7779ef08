"""prometheus.yml against a trainer that serves without measure."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.server import prometheus
from tests.support.http_server import Request, serving
from tests.support.repository import REPOSITORY
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

SERIES = {
    "/decent": [f'trainer_objects{{type="T{number}"}} 1' for number in range(1000)],
    "/names": [f'trainer_objects{{type="T{number}"}} 1' for number in range(100_000)],
    "/long": [f'trainer_objects{{type="{"x" * 5000}"}} 1'],
    "/labels": ["trainer_objects{" + ",".join(f'l{number}="1"' for number in range(100)) + "} 1"],
}


@pytest.fixture
def endpoint() -> Iterator[str]:
    def respond(request: Request) -> tuple[int, bytes]:
        return 200, "\n".join(SERIES[request.path]).encode() + b"\n"

    with serving(respond, content_type="text/plain; version=0.0.4") as server:
        yield f"127.0.0.1:{server.port}"


def test_a_trainer_without_measure_costs_only_its_own_scrape(tmp_path: Path, endpoint: str) -> None:
    shipped = yaml.safe_load((REPOSITORY / "prometheus" / "prometheus.yml").read_text())
    trainer = next(job for job in shipped["scrape_configs"] if job["job_name"] == "trainer")
    del trainer["file_sd_configs"]
    trainer["scrape_interval"], trainer["scrape_timeout"] = "1s", "1s"
    trainer["static_configs"] = [
        {"targets": [endpoint], "labels": {"__metrics_path__": path, "case": path}} for path in SERIES
    ]
    with prometheus(tmp_path, yaml.safe_dump({"scrape_configs": [trainer]})) as url:

        def scraped() -> dict[str, dict[str, Any]]:
            with urllib.request.urlopen(f"{url}/api/v1/targets") as answer:
                targets = json.load(answer)["data"]["activeTargets"]
            return {target["labels"]["case"]: target for target in targets if target["health"] != "unknown"}

        wait_for(lambda: len(scraped()) == len(SERIES), "all are scraped")
        states = scraped()
        assert {case: target["health"] for case, target in states.items()} == {
            "/decent": "up", "/names": "down", "/long": "down", "/labels": "down"
        }  # fmt: skip
        assert "sample limit" in states["/names"]["lastError"] or "body size" in states["/names"]["lastError"]
        with urllib.request.urlopen(f"{url}/api/v1/query?query=count(trainer_objects)") as answer:
            (found,) = json.load(answer)["data"]["result"]
        assert found["value"][1] == "1000"
