"""prometheus.yml against a trainer that serves without measure."""

from __future__ import annotations

import http.server
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.dashboards.server import prometheus
from tests.support.repository import REPOSITORY

pytestmark = pytest.mark.slow

SERIES = {
    "/decent": [f'trainer_objects{{type="T{number}"}} 1' for number in range(1000)],
    "/names": [f'trainer_objects{{type="T{number}"}} 1' for number in range(100_000)],
    "/long": [f'trainer_objects{{type="{"x" * 5000}"}} 1'],
    "/labels": ["trainer_objects{" + ",".join(f'l{number}="1"' for number in range(100)) + "} 1"],
}


class Endpoint(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        text = "\n".join(SERIES[self.path]).encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def test_a_trainer_without_measure_costs_only_its_own_scrape(tmp_path: Path, endpoint: str) -> None:
    shipped = yaml.safe_load((REPOSITORY / "prometheus" / "prometheus.yml").read_text())
    trainer = next(job for job in shipped["scrape_configs"] if job["job_name"] == "trainer")
    del trainer["file_sd_configs"]
    trainer["scrape_interval"], trainer["scrape_timeout"] = "1s", "1s"
    trainer["static_configs"] = [
        {"targets": [endpoint], "labels": {"__metrics_path__": path, "case": path}} for path in SERIES
    ]
    with prometheus(tmp_path, yaml.safe_dump({"scrape_configs": [trainer]})) as url:
        states: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + 60
        while len(states) < len(SERIES) and time.monotonic() < deadline:
            time.sleep(0.5)
            with urllib.request.urlopen(f"{url}/api/v1/targets") as answer:
                targets = json.load(answer)["data"]["activeTargets"]
            states = {t["labels"]["case"]: t for t in targets if t["health"] != "unknown"}
        assert {case: target["health"] for case, target in states.items()} == {
            "/decent": "up", "/names": "down", "/long": "down", "/labels": "down"
        }  # fmt: skip
        assert "sample limit" in states["/names"]["lastError"] or "body size" in states["/names"]["lastError"]
        with urllib.request.urlopen(f"{url}/api/v1/query?query=count(trainer_objects)") as answer:
            (found,) = json.load(answer)["data"]["result"]
        assert found["value"][1] == "1000"
