"""`heapwatch up` on archives of the official layouts: Prometheus, Alertmanager, a stand-in Grafana."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import httpx
import pytest

from heapwatch_stack import binaries
from heapwatch_stack.native import NativeStack
from heapwatch_stack.releases import GRAFANA, PROMETHEUS
from heapwatch_stack.settings import Settings
from tests.support.archives import pinned_archives, serving
from tests.support.programs import find
from tests.support.running_stack import of_stack, port_variables

pytestmark = pytest.mark.slow

# What the stack asks of Grafana, and what Grafana was told.
STAND_IN = """#!{python}
import http.server, json, os, sys
told = {{name: value for name, value in os.environ.items() if name.startswith("GF_")}}
told["arguments"] = sys.argv[1:]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"grafana_build_info 1\\n" if self.path == "/metrics" else json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain" if self.path == "/metrics" else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
address = os.environ["GF_SERVER_HTTP_ADDR"], int(os.environ["GF_SERVER_HTTP_PORT"])
http.server.ThreadingHTTPServer(address, Handler).serve_forever()
"""


def program(name: str) -> bytes:
    """Runs the program that the tests have: its own bytes would be packed and unpacked for seconds."""
    return f'#!/bin/sh\nexec {os.path.realpath(find(name))} "$@"\n'.encode()


@pytest.mark.timeout(300)
def test_up_runs_what_it_downloaded_with_grafana_in_the_dashboards_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in = STAND_IN.format(python=sys.executable).encode()
    programs = {
        "PROMETHEUS": {name: program(name) for name in ("prometheus", "promtool")},
        "ALERTMANAGER": {name: program(name) for name in ("alertmanager", "amtool")},
        "GRAFANA": {"bin/grafana": stand_in, "conf/defaults.ini": b"", "public/index.html": b""},
    }
    monkeypatch.setattr(binaries.shutil, "which", lambda name: None)
    said: list[str] = []
    files: dict[str, bytes] = {}
    with serving(files) as (address, _):
        files |= pinned_archives(monkeypatch, programs, address, top="{name}-{version}")
        own = {"HEAPWATCH_STATE": str(tmp_path / "state"), "XDG_STATE_HOME": str(tmp_path / "user")}
        cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
        settings = Settings.from_environment(port_variables() | own | cache)
        stack = NativeStack(settings, said.append)
        try:
            stack.up()
            assert [row.service for row in stack.status() if not row.healthy] == []
            reported = httpx.get(settings.url("dashboards") + "/api/health").json()
        finally:
            stack.down()
    assert of_stack(settings.state) == []
    assert f"prometheus {PROMETHEUS.version}: official release {PROMETHEUS.version}" in said
    assert f"dashboards: Grafana, official release {GRAFANA.version}" in said
    assert reported["arguments"] == ["server", f"--homepath={settings.cache}/{GRAFANA.folder}"]
    assert reported["GF_SERVER_HTTP_ADDR"] == "127.0.0.1"
    assert reported["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert reported["GF_PATHS_DATA"].startswith(str(settings.state))
    assert reported["GF_SECURITY_ADMIN_PASSWORD"] == f"$__file{{{settings.grafana_password_file}}}"
    assert settings.grafana_password_file.stat().st_mode & 0o777 == 0o600
    boards = Path(reported["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert json.loads(boards.read_text())["uid"] == "heapwatch-fleet"
    assert (Path(reported["GF_PATHS_PROVISIONING"]) / "datasources" / "prometheus.yml").is_file()
