"""A web page in the user's browser, which reaches every port of the machine."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.alerting.harness import HEADERS, Program, alert, notification, stopping, wait_for
from tests.support.attacked_trainers import real_trainer
from tests.support.http_client import CLIENT
from tests.support.ports import free_port

pytestmark = pytest.mark.slow

FOREIGN_HOSTS = ("evil.example", "evil.example:9095", "127.0.0.1.evil.example", "")


@pytest.fixture(scope="module")
def trainer(tmp_path_factory):
    with real_trainer(tmp_path_factory.mktemp("trainer")) as running:
        yield running


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example:7777"}, 421),
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer guessed"}, 401),
        ({"Authorization": "Basic dXNlcjpwYXNz"}, 401),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
    ids=lambda one: next(iter(one)) if isinstance(one, dict) else None,
)
def test_a_page_cleans_up_no_trainer(trainer, headers, expected):
    assert trainer.cleanup(**headers).status_code == expected
    assert trainer.value('trainer_cleanups_total{action="emergency",trigger="http"}') == 0


def test_a_page_reads_and_posts_nothing_to_the_receiver(scene):
    receiver = scene.receiver().start()
    for host in FOREIGN_HOSTS:
        for path in ("/", "/actions", "/metrics", "/healthz"):
            answer = CLIENT.get(f"{receiver.url}{path}", headers={"Host": host}, timeout=30)
            assert answer.status_code in (400, 421), (host, path)
    for headers, expected in (
        ({"Content-Type": "text/plain"}, 401),
        ({**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}, 415),
    ):
        body = notification(alert("a:1"))
        answer = CLIENT.post(f"{receiver.url}/alerts", json=body, headers=headers, timeout=30)
        assert answer.status_code == expected
    assert not receiver.rows()


def test_a_page_silences_no_alert(scene, tmp_path):
    """Alertmanager behind its guard, as browsers reach it."""
    alertmanager = scene.alertmanager(scene.receiver())
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "heapwatch_stack.guard", "127.0.0.1", str(port), "--to"]
    silence = {
        "matchers": [{"name": "alertname", "value": ".+", "isRegex": True, "isEqual": True}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2090-01-01T00:00:00Z",
        "createdBy": "a page",
        "comment": "quiet",
    }
    with stopping(Program([*command, f"127.0.0.1:{alertmanager.port}"], tmp_path / "log")):
        wait_for(lambda: CLIENT.get(f"{url}/-/ready").status_code == 200, "the guard passes on", 60)
        for headers, expected in (
            ({"Origin": "https://evil.example"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}, 403),
            ({"Host": "evil.example:9093"}, 421),
            ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
            ({"Origin": url, "Sec-Fetch-Site": "same-origin"}, 200),
        ):
            answer = CLIENT.post(f"{url}/api/v2/silences", json=silence, headers=headers, timeout=30)
            assert answer.status_code == expected, headers


def test_a_name_made_to_point_here_reads_nothing_of_the_viewer():
    port = free_port()
    # where it finds pytest's variables, NiceGUI serves a test
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = clean | {"HEAPWATCH_BIND": "127.0.0.1", "HEAPWATCH_DASHBOARDS_PORT": str(port)}
    url = f"http://127.0.0.1:{port}"
    viewer = subprocess.Popen([sys.executable, "-m", "heapwatch_viewer"], env=environment)
    try:
        wait_for(lambda: CLIENT.get(f"{url}/healthz").status_code == 200, "the viewer", 120)
        for host in FOREIGN_HOSTS:
            for path in ("/", "/metrics", "/d/heapwatch-fleet"):
                answer = CLIENT.get(url + path, headers={"Host": host}, timeout=30)
                assert answer.status_code in (400, 421), (host, path)
    finally:
        viewer.terminate()
        viewer.wait()
