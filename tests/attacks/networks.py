"""Many, slow and idle clients, forged destinations, and no network at all."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

<<<<<<< HEAD
from heapwatch.http import signing
from tests.alerting.harness import TOKEN, Receiver, alert
from tests.alerting.stage import Stage
=======
from heapwatch_stack.services import IDLE_TIME, MOST_CONNECTIONS
from tests.alerting.faults.stage import Stage
from tests.alerting.harness import alert, find
from tests.attacks.pages import alertmanager_command, guarded, listeners
>>>>>>> less-a1
from tests.attacks.programs import own_places
from tests.attacks.record import Exchange, NotHere, attack


@attack("400 idle keep-alive connections to the receiver", quick=False)
def idle(stage: Stage, exchange: Exchange) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer()
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    connections = []
    for _ in range(400):
        connection = socket.create_connection(("127.0.0.1", receiver.port), timeout=10)
        connection.sendall(request)
        assert connection.recv(4096)
        connections.append(connection)
    exchange.sent("400 connections, each with one request and then silence; then an alert")
    began = time.monotonic()
    receiver.post(alert(trainer.instance))
    row = receiver.decided(1)[0]
    exchange.back(f"{row['action']['result']} after {time.monotonic() - began:.1f} s")
    for connection in connections:
        connection.close()


BEGUN = """
import encodings.idna, os, socket, sys, time
os.setuid(int(sys.argv[1]))
begun = b"POST / HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Length: 1000000\\r\\n\\r\\nx"
kept = []
for _ in range(int(sys.argv[3])):
    kept.append(socket.create_connection(("127.0.0.1", int(sys.argv[2]))))
    kept[-1].sendall(begun)
print("open", flush=True)
time.sleep(60)
"""
OTHER_USER = 61234


@contextmanager
def flooded(user: int, port: int) -> Iterator[None]:
    """600 requests of a user that never end, at a port."""
    command = [sys.executable, "-c", BEGUN, str(user), str(port), "600"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as flooding:
        try:
            assert flooding.stdout is not None
            assert flooding.stdout.readline() == b"open\n"
            yield
        finally:
            flooding.kill()


def slowest_of_five(url: str) -> float:
    """Seconds that the slowest of five requests took, all of which were answered."""
    slowest = 0.0
    for _ in range(5):
        began = time.monotonic()
        assert httpx.get(f"{url}/-/ready", timeout=30).status_code == 200
        slowest = max(slowest, time.monotonic() - began)
    return slowest


<<<<<<< HEAD
def _register(
    receiver: Receiver, client: httpx.Client, port: int, host: str = "", trainer: str = "127.0.0.1"
) -> int:
    body = json.dumps({"port": port, "hosts": [trainer]}).encode()
    authority = host or f"127.0.0.1:{receiver.port}"
    signed = signing.authorization(TOKEN, "POST", f"http://{authority}/targets", body)
    headers = {"Authorization": signed, "Host": authority}
    return client.post(f"{receiver.url}/targets", content=body, headers=headers, timeout=10).status_code


@attack("1,200 signed registrations of one token holder, of services, and one signed for another receiver")
def registrations(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver(prometheus_url="http://127.0.0.1:19090").start()
    time.sleep(1.1)  # the second in which the receiver began is over
    other_address = httpx.HTTPTransport(local_address="127.0.0.2")
    with httpx.Client() as client, httpx.Client(transport=other_address) as other:
        for what, port, host, expected in (
            ("signed for another receiver, and passed on", 7777, f"10.0.0.66:{receiver.port}", 421),
            ("the same for another port", 7777, "127.0.0.1:9", 421),
            ("port 22", 22, "", 400),
            ("the port of the receiver", receiver.port, "", 400),
            ("the port of Prometheus", 19090, "", 400),
        ):
            code = _register(receiver, client, port, host)
            exchange.sent(f"POST /targets, {what}")
            exchange.back(code)
            assert code == expected, what
        code = _register(receiver, client, 7777, trainer="10.0.0.7")
        exchange.sent("POST /targets, signed by a trainer at 10.0.0.7, and passed on by another machine")
        exchange.back(code)
        assert code == 403
        codes = Counter(_register(receiver, client, 20_000 + number) for number in range(1200))
        exchange.sent("1,200 registrations of different ports")
        exchange.back(dict(codes))
        assert codes == {200: 500, 429: 700}
        code = _register(receiver, other, 7777, trainer="127.0.0.2")
        exchange.sent("one of another address")
        exchange.back(code)
        assert code == 200
=======
@attack(
    "another user's 600 requests that never end, to Alertmanager, Prometheus and its port behind the guard"
)
def begun(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("guarded")
    alertmanager = alertmanager_command(folder)
    prometheus_folder = stage.folder("guarded")
    prometheus = (
        *(find("prometheus"), f"--config.file={prometheus_folder}/prometheus.yml"),
        *(f"--storage.tsdb.path={prometheus_folder}/data", f"--web.max-connections={MOST_CONNECTIONS}"),
        f"--web.read-timeout={IDLE_TIME}",
    )
    user = OTHER_USER if os.geteuid() == 0 else os.geteuid()
    with guarded(folder, *alertmanager) as first, guarded(prometheus_folder, *prometheus) as second:
        (inside,) = listeners(prometheus_folder)
        ports = [*(int(url.rpartition(":")[2]) for url in (first, second)), inside]
        for port, url in zip(ports, (first, second, second), strict=True):
            with flooded(user, port):
                slowest = slowest_of_five(url)
            exchange.sent("600 connections, each with a head, Content-Length: 1000000 and one byte")
            exchange.back(f"five requests of this user: 200, the slowest after {slowest:.2f} s")
>>>>>>> less-a1


@attack("20,000 alerts about distinct trainers that nobody scrapes, then a genuine one", quick=False)
def distinct(stage: Stage, exchange: Exchange) -> None:
    receiver, trainer = stage.receiver().start(), stage.trainer()
    for start in range(0, 20_000, 2000):
        answer = receiver.post(
            *(alert(f"10.0.0.1:{number}", number) for number in range(start, start + 2000))
        )
        assert answer.status_code == 200
    exchange.sent("20,000 alerts, each about another trainer; then one about a trainer that is scraped")
    began = time.monotonic()
    receiver.post(alert(trainer.instance, 99_999))
    trainer.wait_until_done("the genuine cleanup")
    took = time.monotonic() - began
    exchange.back(f"the genuine cleanup was done after {took:.1f} s")
    assert took < 10


@attack("an alert that names its own destination", quick=False)
def destination(stage: Stage, exchange: Exchange) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        receiver = stage.receiver().start()
        receiver.post(alert(f"127.0.0.1:{port}", generatorURL=f"http://127.0.0.1:{port}/force_cleanup"))
        row = receiver.decided(1)[0]
        exchange.sent(f"instance and generatorURL 127.0.0.1:{port}, which Prometheus does not scrape")
        exchange.back(f"{row['decision']}: {row['reason']}")
        assert row["reason"] == "not_firing"
        listener.settimeout(0.5)
        try:
            listener.accept()
            raise AssertionError("the receiver went there")
        except TimeoutError:
            exchange.back("nobody came")


WITHOUT = """
import json, sys, urllib.request
import heapwatch
with heapwatch.start("alone", port=0, interval=0.1) as watch:
    for _ in range(1000):
        watch.step()
    try:
        status = urllib.request.urlopen(f"{watch.server.url}metrics", timeout=5).status
    except OSError as error:
        status = str(error)
    print(json.dumps({"port": watch.port, "steps": watch._exporter.safe_point.steps, "metrics": status}))
"""


@attack("a machine without any network, not even loopback")
def no_network(stage: Stage, exchange: Exchange) -> None:
    unshare = shutil.which("unshare")
    if unshare is None or subprocess.run([unshare, "-n", "true"], check=False).returncode:
        raise NotHere("unshare -n needs root")
    folder = stage.folder("trainer")
    done = subprocess.run(
        [unshare, "-n", sys.executable, "-c", WITHOUT],
        env=own_places(folder), text=True, capture_output=True, timeout=60,
    )  # fmt: skip
    exchange.sent("unshare -n python: heapwatch.start(), 1,000 steps")
    exchange.back(f"exit status {done.returncode}: {done.stdout.strip() or done.stderr.strip()[-300:]}")
    assert done.returncode == 0
    assert json.loads(done.stdout)["steps"] == 1000
