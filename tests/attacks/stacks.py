"""A whole stack on a machine that fails, and a browser on the ports of its viewer and its containers."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

from heapwatch_stack.supervision import Supervisor
from tests.alerting.harness import HEADERS, Program, alert, notification, stopping, wait_for
from tests.alerting.stage import Stage
from tests.attacks.pages import FOREIGN_HOSTS, ask_for_silence
from tests.attacks.programs import real_trainer
from tests.attacks.record import Exchange, NotHere, attack
from tests.e2e import running
from tests.support.ports import free_port


@contextmanager
def own_stack(folder: Path) -> Iterator[running.Stack]:
    """The services of an installed wheel: without a clone there is no example trainer."""
    stack = running.Stack(folder)
    del stack.environment["HEAPWATCH_CHECKOUT"]
    try:
        _up(stack)
        yield stack
    finally:
        stack.run("down")
        for process in stack.processes():
            process.kill()


def _up(stack: running.Stack) -> None:
    done = stack.run("up", timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr


def _well(stack: running.Stack) -> bool:
    return stack.run("status").returncode == 0


@attack("a machine that loses power while the stack runs, and heapwatch up again", quick=False)
def reboot(stage: Stage, exchange: Exchange) -> None:
    with own_stack(stage.folder("stack")) as stack:
        token = stack.settings.token_file.read_bytes()
        trainer_folder = stage.folder("trainer")
        with real_trainer(trainer_folder) as trainer:
            shutil.copytree(trainer_folder / "targets", stack.settings.targets, dirs_exist_ok=True)
            left = sorted(path.name for path in stack.settings.targets.glob("*.json"))
            everything = [*stack.processes(), psutil.Process(trainer.process.pid)]
            for process in everything:
                process.suspend()  # all at once: nobody restarts another meanwhile
            for process in everything:
                process.kill()
            psutil.wait_procs(everything, timeout=20)
        exchange.sent(f"SIGKILL to all {len(everything)} processes at once, a trainer among them")
        exchange.back(f"left: {len(stack.processes())} processes, targets {left}")
        assert stack.processes() == []
        _up(stack)
        exchange.sent("heapwatch up")
        exchange.back("healthy, an alert travels to the receiver")
        assert _well(stack)
        assert stack.settings.token_file.read_bytes() == token
        wait_for(lambda: not list(stack.settings.targets.glob("*.json")), "the dead trainer is forgotten", 30)
        exchange.back("the secret is the same, the dead trainer's target is gone")


@attack("Alertmanager hangs: status, log and pages report it", quick=False)
def hanging_alertmanager(stage: Stage, exchange: Exchange) -> None:
    with own_stack(stage.folder("stack")) as stack:
        guard = psutil.Process(Supervisor(stack.settings).processes()["alertmanager"]["pid"])
        page = f"{stack.settings.url(stack.settings.ports.dashboards)}/d/heapwatch-fleet"
        prometheus = f"{stack.settings.url(stack.settings.ports.prometheus)}/api/v1/query"

        def worst() -> int:
            asked = httpx.get(prometheus, params={"query": "max(job:stack:alert_path)"}, timeout=10)
            return int(float(asked.json()["data"]["result"][0]["value"][1]))

        said = "alertmanager: not answering"
        assert said not in httpx.get(page, timeout=30).text
        for process in (guard, *guard.children(recursive=True)):
            process.suspend()
        exchange.sent("SIGSTOP to Alertmanager and its guard: connections are taken, and nothing answers")
        status = stack.run("status")
        (line,) = [line for line in status.stdout.splitlines() if "alertmanager" in line]
        exchange.back(f"heapwatch status: exit code {status.returncode}: {' '.join(line.split())}")
        assert status.returncode == 1
        wait_for(lambda: worst() == 4, "Prometheus says so", 300)
        exchange.back("Alert path, on the pages Fleet and Stack: no Alertmanager")
        wait_for(lambda: said in httpx.get(page, timeout=30).text, "the watchdog says so on the page", 300)
        exchange.back(f"every page of the viewer: {said}. Alerts may be lost: heapwatch status")
        for process in (guard, *guard.children(recursive=True)):
            process.resume()
        wait_for(lambda: said not in httpx.get(page, timeout=30).text and worst() == 0, "all is well", 600)
        exchange.sent("SIGCONT")
        exchange.back("nothing of it is on the pages any more")


LISTEN = """
import encodings.idna, http.server, os, sys
class All(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    do_POST = do_GET
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), All)
os.setuid(int(sys.argv[2]))
print("listens", flush=True)
server.serve_forever()
"""


@attack("the receiver's port, taken by another user while it is restarted", quick=False)
def taken_port(stage: Stage, exchange: Exchange) -> None:
    user = 61234 if os.geteuid() == 0 else os.geteuid()
    with own_stack(stage.folder("stack")) as stack:
        supervisor = Supervisor(stack.settings)
        os.kill(supervisor.processes()["receiver"]["pid"], signal.SIGKILL)
        command = [sys.executable, "-c", LISTEN, str(stack.settings.ports.receiver), str(user)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as listening:
            try:
                assert listening.stdout is not None
                assert listening.stdout.readline() == b"listens\n"
                exchange.sent(f"user {user} answers everything with 200 on the receiver's port")
                for command in (("status",), ("restart", "--service", "receiver"), ("up",)):
                    done = stack.run(*command, timeout=500)
                    said = [line for line in (done.stdout + done.stderr).splitlines() if "receiver" in line]
                    exchange.sent(f"heapwatch {' '.join(command)}")
                    exchange.back(f"exit code {done.returncode}: {' '.join(said[-1].split())}")
                    assert done.returncode == 1
            finally:
                listening.kill()


@attack("the disk of the whole stack fills while it runs, and is freed again", quick=False)
def full_disk(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("stack")
    command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(folder)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        raise NotHere("mounting a small disk needs root")
    try:
        with own_stack(folder) as stack, real_trainer(stage.folder("trainer")) as trainer:
            ballast = folder / "ballast"
            _fill(ballast)
            exchange.sent("the state folder's disk is filled to the last byte")
            receiver = stack.settings.url(stack.settings.ports.receiver)
            token = stack.settings.token_file.read_text().strip()
            headers = {**HEADERS, "Authorization": f"Bearer {token}"}
            codes = set()
            for number in range(40):  # until the database's last page is used up
                many = [alert(f"full:{number}", index) for index in range(50)]
                answer = httpx.post(
                    f"{receiver}/alerts", json=notification(*many), headers=headers, timeout=60
                )
                codes.add(answer.status_code)
            exchange.back(f"POST /alerts: {sorted(codes)}")
            assert codes <= {200, 503}
            assert 503 in codes, "Alertmanager is asked to send again what could not be written"
            assert trainer.makes_progress()
            status = stack.run("status")
            exchange.back(f"heapwatch status: exit code {status.returncode}, {status.stderr.strip()[-100:]}")
            assert "Traceback" not in status.stdout + status.stderr
            stopped = stack.run("down")
            exchange.back(f"heapwatch down: exit code {stopped.returncode}")
            assert stopped.returncode == 0, stopped.stderr
            assert stack.processes() == []
            failed = stack.run("up")
            exchange.back(f"heapwatch up: {failed.stderr.strip()}")
            assert failed.returncode == 1
            assert len(failed.stderr.splitlines()) == 1
            ballast.unlink()
            exchange.sent("the disk is freed")
            _up(stack)
            _fill(ballast)
            exchange.sent("it is filled, and freed while the stack runs")
            assert trainer.makes_progress()
            ballast.unlink()
            wait_for(lambda: _well(stack), "every service is healthy again", 120)
            _up(stack)
            exchange.back("every service is healthy by itself, heapwatch up proves a delivery")
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=False)


def _fill(file: Path) -> None:
    with file.open("wb", buffering=0) as ballast:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while ballast.write(b"x" * size):
                    pass
            except OSError:
                continue


@attack("a page whose host name points to the viewer, also if it listens on 0.0.0.0", quick=False)
def viewer_host(stage: Stage, exchange: Exchange) -> None:
    for bind in ("127.0.0.1", "0.0.0.0"):
        port = free_port()
        own = {"HEAPWATCH_BIND": bind, "HEAPWATCH_DASHBOARDS_PORT": str(port)}
        foreign = ("PYTEST_", "HEAPWATCH_")
        clean = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        command = [sys.executable, "-m", "heapwatch_viewer"]
        program = Program(command, stage.folder("viewer") / "log", clean | own)
        url = f"http://127.0.0.1:{port}"
        with stopping(program):
            wait_for(lambda url=url: httpx.get(f"{url}/healthz").status_code == 200, "the viewer", 90)
            for host in FOREIGN_HOSTS:
                codes = [
                    httpx.get(url + path, headers={"Host": host}, timeout=10).status_code
                    for path in ("/", "/metrics", "/d/heapwatch-fleet")
                ]
                exchange.sent(f"to {bind}: GET / /metrics /d/heapwatch-fleet, Host: {host!r}")
                exchange.back(codes)
                assert set(codes) <= {400, 421}


@contextmanager
def published_alertmanager(stage: Stage) -> Iterator[str]:
    """The address of an Alertmanager as a container publishes it: behind its guard, on all addresses."""
    alertmanager = stage.alertmanager(stage.receiver())
    port = free_port()
    command = [sys.executable, "-m", "heapwatch_stack.guard", "0.0.0.0", str(port), "--to"]
    program = Program([*command, f"127.0.0.1:{alertmanager.port}"], stage.folder("guard") / "log")
    url = f"http://127.0.0.1:{port}"
    with stopping(program):
        wait_for(lambda: httpx.get(f"{url}/-/ready").status_code == 200, "the guard passes on", 30)
        yield url


@attack("a page that silences alerts of a stack in containers", quick=False)
def containers_page(stage: Stage, exchange: Exchange) -> None:
    with published_alertmanager(stage) as url:
        exchange.sent("at the published port")
        ask_for_silence(
            exchange,
            url,
            ("a page's origin", {"Origin": "https://evil.example"}, 403),
            ("a name made to point here", {"Host": "evil.example:9093"}, 421),
            ("Alertmanager's own page", {"Origin": url, "Sec-Fetch-Site": "same-origin"}, 200),
        )


@attack("a label whose name is any text, in a group of alerts", quick=False)
def odd_label(stage: Stage, exchange: Exchange) -> None:
    receiver = stage.receiver().start()
    trainer = stage.trainer()
    odd = alert("nobody:1", 7, labels={"größe": "9", "a b": "1"})
    exchange.sent("an alert with the labels größe and 'a b', in one group with a genuine one")
    receiver.post(odd, alert(trainer.instance))
    trainer.wait_until_done("the genuine one is acted on")
    exchange.back("200; the genuine alert's cleanup is done")
