"""The network by accident: what is open to it, many slow clients, and no network at all."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys

import psutil
import pytest

from deploy.generator import chart
from heapwatch.http.server import MAX_CONNECTIONS
from tests.support.attacked_trainers import own_places, real_trainer
from tests.support.http_client import CLIENT

pytestmark = pytest.mark.slow

# Each would open the chart to others than Alertmanager and Prometheus, or give it rights.
OPENINGS = (
    *("NodePort", "LoadBalancer", "externalIPs", "hostPort", "hostNetwork", "hostPath", "privileged: true"),
    *("ClusterRole", "RoleBinding", "kind: Ingress", "kind: Secret"),
)


def test_a_trainer_listens_on_loopback_alone(tmp_path):
    with real_trainer(tmp_path) as trainer:
        connections = psutil.Process(trainer.process.pid).net_connections()
        assert {one.laddr.ip for one in connections if one.status == "LISTEN"} == {"127.0.0.1"}


def test_the_chart_opens_nothing():
    texts = [text for name, text in chart.files().items() if name.endswith(".yaml")]
    assert texts
    assert not {word for text in texts for word in OPENINGS if word in text}


def test_slow_clients_on_every_connection_do_not_keep_a_scrape_out(tmp_path):
    with real_trainer(tmp_path) as trainer:
        connections = []
        for _ in range(2 * MAX_CONNECTIONS):
            connection = socket.create_connection(("127.0.0.1", trainer.port), timeout=30)
            connection.sendall(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ")
            connections.append(connection)
        assert CLIENT.get(f"{trainer.url}/metrics", timeout=60).status_code == 200
        for connection in connections:
            connection.close()
        assert trainer.makes_progress()


WITHOUT = """
import json, urllib.request
import heapwatch
with heapwatch.start("alone", port=0, interval=0.1) as watch:
    for _ in range(1000):
        watch.step()
    print(json.dumps({"steps": watch.exporter.safe_point.steps}))
"""


def test_without_any_network_it_trains(tmp_path):
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-n", "true"], check=False).returncode:
        pytest.skip("unshare -n needs root")
    done = subprocess.run(
        [unshare, "-n", sys.executable, "-c", WITHOUT],
        env=own_places(tmp_path), text=True, capture_output=True, timeout=120, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"steps": 1000}
