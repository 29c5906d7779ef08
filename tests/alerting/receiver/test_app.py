"""The receiver's HTTP interface, on a real server whose Prometheus is away: nothing is acted on."""

import httpx
import pytest
from starlette.testclient import TestClient

from heapwatch_receiver.app import create_app
from heapwatch_receiver.performer import Performer
from heapwatch_receiver.settings import Settings as ReceiverSettings
from tests.support.alerting.harness import HEADERS, TOKEN, Receiver, alert, notification, stopping
from tests.support.alerting.payloads import MALFORMED


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("receiver")
    receiver = Receiver(folder, "http://127.0.0.1:1", MAX_BODY_BYTES=1 << 20).start()
    with stopping(receiver.program):
        yield receiver


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.url, headers=HEADERS, timeout=20) as client:
        yield client


def rows(client: httpx.Client) -> list[dict]:
    return client.get("/actions", params={"limit": 500}).json()["rows"]


def post(client: httpx.Client, *alerts: dict) -> None:
    assert client.post("/alerts", json=notification(*alerts)).json() == {"alerts": len(alerts)}


@pytest.mark.parametrize(
    ("status", "headers", "body"), [pytest.param(*case, id=name) for name, *case in MALFORMED]
)
def test_wrong_requests_get_a_4xx_that_says_why(client, status, headers, body):
    before = rows(client)
    answer = client.post("/alerts", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]
    assert ": : " not in answer.json()["error"]  # what is wrong has a name
    assert rows(client) == before


def test_every_alert_has_a_row_with_its_reason_and_is_counted_by_it(client):
    series = 'heapwatch_receiver_alerts_suppressed_total{reason="not_cleanup"}'
    before = value(client.get("/metrics").text, series)
    ended = alert("a:1", 2, status="resolved")
    other = alert("a:1", 3, labels={"action": "page"})
    post(client, ended, other)
    metrics = client.get("/metrics").text
    assert value(metrics, series) == before + 1
    assert value(metrics, series.replace("not_cleanup", "budget")) == 0
    found = rows(client)
    assert [(row["decision"], row["reason"]) for row in found] == [
        ("suppress", "not_cleanup"),
        ("close", "resolved"),
    ]
    assert client.get("/actions", params={"decision": "close"}).json()["rows"] == found[1:]


def test_the_watchdog_is_a_heartbeat_and_no_row(client):
    name, known = "heapwatch_receiver_last_watchdog_timestamp_seconds", rows(client)
    before = value(client.get("/metrics").text, name)
    post(client, alert("", labels={"alertname": "Watchdog"}))
    assert value(client.get("/metrics").text, name) > before
    assert rows(client) == known


def value(metrics: str, series: str) -> float:
    return float(
        next(line for line in metrics.splitlines() if line.startswith(series + " ")).rpartition(" ")[2]
    )


def test_the_page_escapes_what_alerts_say(client):
    markup = "<script>alert(1)</script>"
    post(
        client,
        alert(
            markup,
            labels={"alertname": markup, "component": markup, "action": "page"},
            annotations={"summary": markup},
        ),
    )
    page = client.get("/", params={"instance": markup})
    assert "<script" not in page.text
    assert page.text.count("&lt;script&gt;") == 4
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "before=0", "decision=maybe", "unknown=1"])
def test_a_wrong_filter_is_named(client, query):
    answer = client.get(f"/actions?{query}")
    assert answer.status_code == 422
    assert query.partition("=")[0] in answer.json()["error"]


def test_on_loopback_only_loopback_names_are_answered(client):
    for host in ("attacker.example", "attacker.example:9095", "127.0.0.1.attacker.example", ""):
        assert client.get("/actions", headers={"Host": host}).status_code == 421, host
    for host in ("127.0.0.1:9095", "localhost", "[::1]:9095"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host


def test_a_label_whose_name_is_any_text_does_not_cost_its_group(client):
    odd = alert("utf:1", 5, labels={"größe des puffers": "9", "a.b/c": "1", "<b>\n": "2"})
    post(client, odd, alert("utf:2", 6))
    found = {row["instance"]: row for row in rows(client)}
    assert {"utf:1", "utf:2"} <= set(found)
    assert found["utf:1"]["labels"]["größe des puffers"] == "9"
    assert client.get("/").status_code == 200


def test_the_runbooks_that_alerts_link_to_are_served_and_nothing_else(client):
    assert "# " in client.get("/runbooks/TrainerLeak.md").text
    for name in ("nothing.md", "..%2Frunning.md", "%2Fetc%2Fpasswd"):
        assert client.get(f"/runbooks/{name}").status_code == 404


def test_alerts_are_posted_and_nothing_else(client):
    assert client.get("/alerts").status_code == 405
    assert client.post("/actions").status_code == 405


def test_open_to_the_network_it_answers_addresses_and_its_own_names_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_ALLOWED_HOSTS", "receiver, proxy.example:443")
    client = TestClient(create_app(ReceiverSettings(database=tmp_path / "db", bind="0.0.0.0"), TOKEN))
    for host in ("evil.example", "evil.example:9095", "127.0.0.1.evil.example", "1.2.3.4.nip.io", ""):
        assert client.get("/actions", headers={"Host": host}).status_code == 421, host
    for host in ("127.0.0.1", "10.0.0.7:9095", "[2001:db8::1]:9095", "receiver:9095", "proxy.example"):
        assert client.get("/healthz", headers={"Host": host}).status_code == 200, host


def test_the_text_of_the_performer_does_not_show_the_token():
    others = dict.fromkeys(("store", "client", "prometheus", "metrics"))
    assert TOKEN not in repr(Performer(settings=ReceiverSettings(), token=TOKEN, **others))
