"""A web page in the user's browser, which reaches every port of the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from heapwatch_stack.services import NO_OTHER_ORIGIN
from tests.alerting.harness import HEADERS, Program, Prometheus, alert, find, notification, stopping, wait_for
from tests.alerting.stage import Stage
from tests.attacks.programs import real_trainer
from tests.attacks.record import Exchange, attack
from tests.support.ports import free_port

FOREIGN_HOSTS = ("evil.example", "evil.example:9095", "127.0.0.1.evil.example", "")


@attack("a page whose host name points to the trainer (DNS rebinding)")
def trainer_host(stage: Stage, exchange: Exchange) -> None:
    with real_trainer(stage.folder("trainer")) as trainer:
        for path in ("/", "/metrics", "/performance_status", "/healthz"):
            answer = httpx.get(trainer.url + path, headers={"Host": "evil.example:7777"}, timeout=10)
            exchange.answered(f"GET {path}, Host: evil.example:7777", answer, 421)


@attack("a page whose host name points to the receiver, also if it listens on 0.0.0.0", quick=False)
def receiver_host(stage: Stage, exchange: Exchange) -> None:
    for bind in ("127.0.0.1", "0.0.0.0"):
        receiver = stage.receiver(bind=bind).start()
        for host in FOREIGN_HOSTS:
            codes = [
                httpx.get(f"{receiver.url}{path}", headers={"Host": host}, timeout=10).status_code
                for path in ("/", "/actions", "/metrics", "/healthz")
            ]
            exchange.sent(f"to {bind}: GET / /actions /metrics /healthz, Host: {host!r}")
            exchange.back(codes)
            assert set(codes) <= {400, 421}
        receiver.program.stop()


@attack("a page that reads Prometheus across origins")
def prometheus_origin(stage: Stage, exchange: Exchange) -> None:
    prometheus = Prometheus(stage.folder("prometheus"), options=[f"--web.cors.origin={NO_OTHER_ORIGIN}"])
    with stopping(prometheus.program):
        for origin in ("https://evil.example", "http://127.0.0.1:8080", "null"):
            answer = httpx.get(
                f"{prometheus.url}/api/v1/label/__name__/values", headers={"Origin": origin}, timeout=10
            )
            exchange.sent(f"GET /api/v1/label/__name__/values, Origin: {origin}")
            exchange.back(f"Access-Control-Allow-Origin: {answer.headers.get('access-control-allow-origin')}")
            assert "access-control-allow-origin" not in answer.headers


def silence(alertname: str) -> dict[str, object]:
    return {
        "matchers": [{"name": "alertname", "value": alertname, "isRegex": True, "isEqual": True}],
        "startsAt": "2020-01-01T00:00:00Z",
        "endsAt": "2090-01-01T00:00:00Z",
        "createdBy": "a page",
        "comment": "quiet",
    }


def ask_for_silence(exchange: Exchange, url: str, *cases: tuple[str, dict[str, str], int]) -> None:
    """Post a silence of every alert: by what, with which headers, and the status that is expected."""
    for what, headers, expected in cases:
        answer = httpx.post(f"{url}/api/v2/silences", json=silence(".+"), headers=headers, timeout=10)
        exchange.answered(f"POST /api/v2/silences, {what}", answer, expected)


def alertmanager_command(folder: Path) -> tuple[str, ...]:
    """Alertmanager on a Unix socket, as the guard runs it."""
    return (
        *("--socket", f"{folder}/run/alertmanager.sock"),
        *(find("alertmanager", "prometheus-alertmanager"), "--cluster.listen-address="),
        *(f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/data"),
    )


@contextmanager
def guarded(folder: Path, *command: str) -> Iterator[str]:
    (folder / "alertmanager.yml").write_text("route: {receiver: x}\nreceivers: [{name: x}]\n")
    (folder / "prometheus.yml").write_text("scrape_configs: []\n")
    port = free_port()
    guard = [sys.executable, "-m", "heapwatch_stack.guard", "127.0.0.1", str(port)]
    program = Program([*guard, *command], folder / "log")
    url = f"http://127.0.0.1:{port}"
    with stopping(program):
        wait_for(lambda: httpx.get(f"{url}/-/ready").status_code == 200, "the program is ready", 60)
        yield url


@attack("a page that silences alerts, across origins or by DNS rebinding", quick=False)
def alertmanager_page(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("alertmanager")
    with guarded(folder, *alertmanager_command(folder)) as url:
        ask_for_silence(
            exchange,
            url,
            ("a page's origin", {"Origin": "https://evil.example"}, 403),
            ("a page's form", {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"}, 403),
            ("a name made to point here", {"Host": "evil.example:9093"}, 421),
            ("the same, as its own origin", {"Host": "evil.example", "Origin": "http://evil.example"}, 421),
            ("Alertmanager's own page", {"Origin": url, "Sec-Fetch-Site": "same-origin"}, 200),
        )
        assert len(httpx.get(f"{url}/api/v2/silences").json()) == 1
        exchange.sent("a port behind the guard")
        exchange.back(f"there is none: {listeners(folder)}; its socket is in a folder of mode 0700")
        assert listeners(folder) == []
        assert (folder / "run").stat().st_mode & 0o777 == 0o700


@attack("a page whose host name points to Prometheus", quick=False)
def prometheus_page(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("prometheus")
    options = (f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data")
    with guarded(folder, find("prometheus"), *options) as url:
        (inside,) = listeners(folder)
        answer = httpx.get(f"http://127.0.0.1:{inside}/api/v1/query?query=up", timeout=10)
        exchange.sent("GET /api/v1/query at the port behind the guard")
        exchange.back(answer.status_code)
        assert answer.status_code == 404
        for what, headers, expected in (
            ("a name made to point here", {"Host": "evil.example:9090"}, 421),
            ("a page's origin", {"Origin": "https://evil.example"}, 403),
            ("nothing unusual", {}, 200),
        ):
            answer = httpx.get(f"{url}/api/v1/query?query=up", headers=headers, timeout=10)
            exchange.answered(f"GET /api/v1/query, {what}", answer, expected)
        page = httpx.get(url, timeout=10)
        exchange.sent("GET /, as a person opens it")
        exchange.back(f"{page.status_code} to {page.headers['location']}")
        assert page.status_code == 302
        assert page.headers["location"] in ("/graph", "/query", "/classic/graph")


def listeners(folder: Path) -> list[int]:
    """Ports of the program behind the guard, whose command line names its folder."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or ()  # a process that has ended has none
        if any(str(folder) in word for word in words) and "heapwatch_stack.guard" not in words:
            found += [one.laddr.port for one in process.net_connections() if one.status == "LISTEN"]
    return found


@attack("a page that posts an alert to the receiver", quick=False)
def receiver_post(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    for what, headers, expected in (
        ("without a token, as text/plain", {"Content-Type": "text/plain"}, 401),
        ("as a form, with a token", {**HEADERS, "Content-Type": "application/x-www-form-urlencoded"}, 415),
    ):
        answer = httpx.post(
            f"{receiver.url}/alerts", json=notification(alert("a:1")), headers=headers, timeout=10
        )
        exchange.answered(f"POST /alerts {what}", answer, expected)
    assert not receiver.rows()
