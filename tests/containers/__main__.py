"""Brings the stack up in containers, drives the demonstration, kills, changes, and takes it down.

Each step says what was done and what came back. It needs a Docker engine (`DOCKER_HOST` names another); on a
machine that reaches no registry `tests/containers/standins.sh` makes base images first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from tests.support.alerting.harness import wait_for
from tests.support.repository import REPOSITORY, python_path
from tests.support.running_stack import port_variables

BROKEN_RULE = "groups:\n  - {name: broken, rules: [{record: a:b, expr: 'sum('}]}\n"
OWN_RULE = "groups:\n  - {name: own, rules: [{record: own:rule, expr: vector(1)}]}\n"


class Clone:
    """A copy of this clone, so that its rules can be changed, and a stack of its own."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "clone"
        shutil.copytree(
            REPOSITORY, self.path, symlinks=True, ignore=shutil.ignore_patterns(".git", ".heapwatch", "*.pyc")
        )
        self.ports = port_variables()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")},
            **self.ports,
            "HEAPWATCH_CHECKOUT": str(self.path),
            "HEAPWATCH_STATE": str(folder / "state"),
            "XDG_STATE_HOME": str(folder / "xdg"),
            "PYTHONPATH": python_path(self.path),
        }

    def heapwatch(self, *arguments: str, expect: int = 0, **changes: str) -> str:
        """Run the command in docker mode."""
        command = [sys.executable, "-m", "heapwatch", *arguments, "--mode", "docker"]
        environment = self.environment | changes
        done = subprocess.run(command, cwd=self.path, env=environment, text=True, capture_output=True)
        said = done.stdout + done.stderr
        assert done.returncode == expect, (
            f"{' '.join(arguments)}: {done.returncode}, not {expect}:\n{said[-3000:]}"
        )
        return said

    def get(self, service: str, path: str) -> httpx.Response:
        """What a service answers."""
        port = self.ports[f"HEAPWATCH_{service.upper()}_PORT"]
        return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=10, trust_env=False)

    @property
    def rule(self) -> Path:
        """A rule file of the user's own."""
        return self.path / "prometheus" / "rules" / "own.yml"


def docker(*arguments: str) -> str:
    """What the Docker client prints."""
    return subprocess.run(["docker", *arguments], text=True, capture_output=True, check=True).stdout.strip()


def container(service: str) -> str:
    """The id of a service's container."""
    found = docker("ps", "-q", "--filter", f"label=com.docker.compose.service={service}").split()
    assert len(found) == 1, f"{len(found)} containers of {service}"
    return found[0]


def up(clone: Clone) -> str:
    """A first `up` ends with every service healthy."""
    clone.heapwatch("up")
    clone.heapwatch("status")
    return "every service is healthy"


def confined(_clone: Clone) -> str:
    """No container runs as root, and none without a bound on its processes."""
    for service in ("prometheus", "alertmanager", "receiver", "walker-training-app"):
        user = docker("inspect", "--format", "{{.Config.User}}", container(service)).partition(":")[0]
        pids = docker("inspect", "--format", "{{.HostConfig.PidsLimit}}", container(service))
        assert user not in ("", "0", "root"), f"{service} runs as {user or 'root'}"
        assert int(pids) > 0, f"{service} has a limit of {pids} processes"
    return "no root, bounded numbers of processes"


def demonstration(clone: Clone) -> str:
    """A leak is found and cleaned up."""
    assert "the loop closed" in clone.heapwatch("demo")
    return "the loop closed"


def killed_trainer(clone: Clone) -> str:
    """A killed trainer is alerted within two minutes, with what was last known of it."""
    docker("kill", container("walker-training-app"))
    began = time.monotonic()
    texts: list[str] = []

    def alerted() -> bool:
        alerts = clone.get("prometheus", "/api/v1/alerts").json()["data"]["alerts"]
        texts[:] = [
            " ".join(one["annotations"].values())
            for one in alerts
            if one["labels"]["alertname"] == "TrainerDown" and one["state"] == "firing"
        ]
        return bool(texts)

    wait_for(alerted, "TrainerDown", 120)
    took = time.monotonic() - began
    assert len(texts) == 1, texts
    assert "walker" in texts[0], texts
    assert "Last known: " in texts[0], texts
    known = clone.get("prometheus", "/api/v1/query?query=job:trainer_known:memory_bytes")
    assert known.json()["data"]["result"], "no page can show the memory that was last known"
    clone.heapwatch("up")
    return f"alerted after {took:.0f} s: {texts[0]}"


def reload_then_crash(clone: Clone) -> str:
    """A changed rule is loaded without a restart, and a killed Prometheus comes back after that."""
    before = container("prometheus")
    clone.rule.write_text(OWN_RULE)
    clone.heapwatch("up")
    assert container("prometheus") == before, "Prometheus was made anew for a changed rule"
    assert "own:rule" in clone.get("prometheus", "/api/v1/rules").text, "the changed rule is not loaded"
    pid = docker("inspect", "--format", "{{.State.Pid}}", before)
    os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: clone.get("prometheus", "/-/ready").status_code == 200, "Prometheus is back", 90)
    return "loaded; killed, and back"


def broken_rule(clone: Clone) -> str:
    """A rule that cannot be read is refused, and the old ones go on."""
    clone.rule.write_text(BROKEN_RULE)
    began = time.monotonic()
    said = clone.heapwatch("up", expect=1)
    assert "rejected its changed configuration" in said, said[-1000:]
    took = time.monotonic() - began
    clone.rule.write_text(OWN_RULE)
    clone.heapwatch("up")
    return f"refused after {took:.0f} s, the old rules went on"


def changed_channel(clone: Clone) -> str:
    """A notification channel is loaded; a wrong one is named before anything starts."""
    file = clone.path / "notifications.yml"
    file.write_text("webhook_configs: [{url: 'http://chat.example.com/hook'}]\n")
    clone.heapwatch("up", HEAPWATCH_NOTIFICATIONS_FILE=str(file))
    text = clone.get("alertmanager", "/api/v2/status").json()["config"]["original"]
    assert text.count("url:") >= 3, f"the channel is not loaded:\n{text}"
    file.write_text("webhook: http://chat.example.com/hook\n")
    said = clone.heapwatch("up", expect=1, HEAPWATCH_NOTIFICATIONS_FILE=str(file))
    assert "has 'webhook'; allowed are lists" in said, said[-1000:]
    clone.heapwatch("up")
    return "loaded; a wrong one is named"


def changed_token(clone: Clone) -> str:
    """After another token the way from alert to receiver is whole again (`up` proves it)."""
    token = Path(clone.environment["HEAPWATCH_STATE"]) / "secrets" / "token"
    token.write_text("another-token-for-this-stack\n")
    clone.heapwatch("up")
    return "an alert arrives"


def receiver_settings(clone: Clone) -> str:
    """What the environment says of the receiver reaches it."""
    clone.heapwatch("up", HEAPWATCH_RECEIVER_DRY_RUN="true")
    seen = docker("exec", container("receiver"), "printenv", "HEAPWATCH_RECEIVER_DRY_RUN")
    clone.heapwatch("up")
    assert seen == "true", f"the receiver has {seen!r}"
    return "a dry run is one"


def taken_down(clone: Clone) -> str:
    """`down` leaves no container, `clean` no volume, no image and no file."""
    clone.heapwatch("down")
    clone.heapwatch("clean")
    assert docker("ps", "-aq", "--filter", "label=com.docker.compose.project") == ""
    assert docker("volume", "ls", "-q", "--filter", "name=heapwatch-") == ""
    assert docker("images", "-q", "--filter", "reference=heapwatch/*") == ""
    assert not Path(clone.environment["HEAPWATCH_STATE"]).exists()
    return "nothing is left"


STEPS = (
    up,
    confined,
    demonstration,
    killed_trainer,
    reload_then_crash,
    broken_rule,
    changed_channel,
    changed_token,
    receiver_settings,
    taken_down,
)


def main(names: list[str]) -> int:
    """Do every step, or `up` and those named; 1 with the first that fails. The stack is taken down again."""
    steps = [step for step in STEPS if not names or step.__name__ in ("up", *names)]
    with tempfile.TemporaryDirectory() as folder:
        clone, step = Clone(Path(folder)), STEPS[0]
        try:
            for step in steps:
                began = time.monotonic()
                outcome = step(clone)
                print(f"{step.__name__:18} {time.monotonic() - began:5.0f} s  {outcome}", flush=True)
        except (AssertionError, subprocess.CalledProcessError, httpx.HTTPError) as failure:
            print(f"{step.__name__:18} FAILED  {failure}", flush=True)
            return 1
        finally:
            if step is not STEPS[-1]:
                clone.heapwatch("down")
                clone.heapwatch("clean")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
