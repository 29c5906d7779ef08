"""What containers and a cluster open to others, as they are shipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any

import httpx
import yaml

from deploy.generator import __main__ as generator
from deploy.generator import text
from deploy.generator.configuration import RECEIVER, RECEIVER_PORT, load
from tests.alerting.harness import HEADERS, TOKEN, Program, alert, notification, stopping, wait_for
from tests.alerting.stage import Stage
from tests.attacks.networks import flooded, slowest_of_five
from tests.attacks.record import Exchange, NotHere, attack
from tests.attacks.stacks import published_alertmanager
from tests.support.ports import free_port
from tests.support.repository import REPOSITORY

GUARDED = ("prometheus", "alertmanager")


@attack("the ports that containers publish, by default and on all addresses", quick=False)
def published(stage: Stage, exchange: Exchange) -> None:
    compose = shutil.which("docker-compose")
    if compose is None:
        raise NotHere("docker-compose is not installed")
    for bind in ("", "0.0.0.0"):
        own = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
        command = [compose, "-f", str(REPOSITORY / "docker-compose.yml"), "config"]
        given = own | ({"HEAPWATCH_BIND": bind} if bind else {})
        done = subprocess.run(command, text=True, capture_output=True, env=given, check=True)
        services: dict[str, Any] = yaml.safe_load(done.stdout)["services"]
        ports = {name: _published(service) for name, service in services.items()}
        exchange.sent(f"HEAPWATCH_BIND={bind or 'not set'}")
        exchange.back({name: found for name, found in ports.items() if found})
        assert all(port.startswith(f"{bind or '127.0.0.1'}:") for found in ports.values() for port in found)
        assert not any(ports[name] for name in GUARDED), "none but through the guard"
        for name, service in services.items():
            assert service.get("network_mode", "none") == "none", name
            assert not {"privileged", "pid"} & service.keys(), name
            assert service["cap_drop"] == ["ALL"], name
            assert "docker.sock" not in str(service.get("volumes")), name


def _published(service: dict[str, Any]) -> list[str]:
    found = []
    for port in service.get("ports", []):
        if isinstance(port, dict):
            found.append(f"{port.get('host_ip', '0.0.0.0')}:{port['published']}")
        else:
            found.append(str(port).removesuffix("/tcp").rpartition(":")[0])
    return found


@attack("600 requests that never end at a published port, if every client has the same address", quick=False)
def one_address(stage: Stage, exchange: Exchange) -> None:
    with published_alertmanager(stage) as url:
        with flooded(os.geteuid(), int(url.rpartition(":")[2])):
            exchange.sent("600 connections of the one sender there is, each with a request that never ends")
            slowest = slowest_of_five(url)
        exchange.back(f"five requests of the same sender: 200, the slowest after {slowest:.2f} s")


# Each would open it to others than Alertmanager and Prometheus, or give it rights.
OPENINGS = (
    *("NodePort", "LoadBalancer", "externalIPs", "hostPort", "hostNetwork", "hostPath", "privileged: true"),
    *("ClusterRole", "RoleBinding", "kind: Ingress", "kind: Secret"),
)
CONFIGURATION = REPOSITORY / "deploy" / "configuration.yml"


@attack(
    "the receiver as the chart starts it, without its secret, without the token, by another name", quick=False
)
def chart(stage: Stage, exchange: Exchange) -> None:
    files = {name: text for name, text in generator.files(CONFIGURATION).items() if name.endswith(".yaml")}
    found = {word for text in files.values() for word in OPENINGS if word in text}
    exchange.sent(f"{', '.join(OPENINGS)} in {len(files)} files of chart and base")
    exchange.back(found or "none of these")
    assert not found
    receiver = {one["kind"]: one for one in text.objects("receiver.yaml", load(CONFIGURATION))}
    (container,) = receiver["StatefulSet"]["spec"]["template"]["spec"]["containers"]
    data = stage.folder("receiver")
    given = {one["name"]: one["value"] for one in container["env"]}
    given |= {"HEAPWATCH_RECEIVER_DATABASE": str(data / "receiver.sqlite3"), "HEAPWATCH_BIND": "0.0.0.0"}
    given |= {"HEAPWATCH_TOKEN_FILE": str(data / "token"), "HEAPWATCH_RECEIVER_PORT": str(free_port())}
    for name in [name for name in os.environ if name.startswith("HEAPWATCH_")]:
        given.setdefault(name, "")
    command = [sys.executable, "-m", "heapwatch_receiver"]
    without = Program(command, data / "without.log", given)
    with stopping(without):
        code = without.process.wait(60)
    exchange.sent("it starts without its secret")
    exchange.back(f"exit status {code}: {(data / 'without.log').read_text().strip().splitlines()[-1]}")
    assert code == 2
    (data / "token").write_text(TOKEN)
    (data / "token").chmod(0o600)
    url = f"http://127.0.0.1:{given['HEAPWATCH_RECEIVER_PORT']}"
    program = Program(command, data / "log", given)
    body = notification(alert("10.0.0.1:7777"))
    with stopping(program):
        wait_for(lambda: httpx.get(f"{url}/healthz").status_code == 200, "the receiver", 60)
        for what, headers, expected in (
            ("without the token", {}, 401),
            ("by a name of a page", {**HEADERS, "Host": f"evil.example:{RECEIVER_PORT}"}, 421),
            ("as Alertmanager does", {**HEADERS, "Host": f"{RECEIVER}:{RECEIVER_PORT}"}, 200),
        ):
            answer = httpx.post(f"{url}/alerts", json=body, headers=headers, timeout=10)
            exchange.answered(f"POST /alerts {what}", answer, expected)
