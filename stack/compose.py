"""The stack as containers, by Docker Compose."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from heapwatch.stack import configuration, delivery, health, preflight, presence
from heapwatch.stack.containers import ADDRESSES
from heapwatch.stack.endpoints import TRAINER, endpoints
from heapwatch.stack.errors import StackError
from heapwatch.stack.fingerprint import fingerprint
from heapwatch.stack.health import Say
from heapwatch.stack.report import Row
from heapwatch.stack.settings import Settings

PROJECT = "heapwatch"


def engine_answers() -> bool:
    """Whether a Docker engine and a Compose client are there."""
    return shutil.which("docker") is not None and _succeeds("docker", "info") and _client() is not None


class ComposeStack:
    """`up`, `down` and the rest with docker-compose.yml."""

    mode = "docker"

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._endpoints = endpoints(settings, grafana=True)
        self._targets = ADDRESSES | {TRAINER: f"{TRAINER}:7777"}

    def up(self) -> None:
        """Build, start and wait; ends with every container healthy and scraped."""
        if not engine_answers():
            raise StackError("no Docker engine answers (or it has no Compose): start it, or use MODE=native")
        configuration.claim(self._settings.state)
        configuration.make_secrets(self._settings)
        self._run("config", "-q")
        before = self._container_ids()
        if not any(before.values()):
            preflight.check_ports(self._settings, self._endpoints.values())
        try:
            self._run("up", "-d", "--build", "--remove-orphans")
            for name in ("prometheus", "alertmanager"):
                self._reload(name, is_new=before.get(name) != self._container_ids().get(name))
            say = self._say if before != self._container_ids() else (lambda _: None)
            health.wait_healthy(self._settings, self._endpoints.values(), lambda: None, say, patience=300)
            health.wait_scraped(self._settings, self._targets)
            delivery.prove(self._settings, fresh=before != self._container_ids())
            # Its Prometheus reads a volume, and no loopback address of this machine.
            at = f"tcp:{self._settings.host}:{self._settings.ports.prometheus}"
            presence.announce(self._settings, at, targets=None)
        except KeyboardInterrupt:
            self._run("stop") if any(before.values()) else self.down()
            raise StackError("interrupted: what this had started is stopped again") from None
        except BaseException:
            if not any(before.values()):
                self.down()
            raise

    def down(self) -> None:
        """Stop and remove the containers; volumes stay."""
        presence.withdraw(self._settings)
        self._run("down", "--remove-orphans")

    def remove_data(self) -> None:
        """Remove the volumes."""
        self._run("down", "--volumes")

    def status(self) -> list[Row]:
        """One row a service."""
        seen = health.targets(self._settings)
        rows = []
        for name, container in self._container_ids().items():
            endpoint = self._endpoints[name]
            rows.append(
                Row(
                    service=name,
                    address=self._settings.url(endpoint.port),
                    state=health.condition(self._settings, endpoint) if container else "stopped",
                    scraped=seen.get(self._targets[name], {}).get("health", "unknown"),
                    process=container[:12],
                )
            )
        return rows

    def restart(self, name: str) -> None:
        """Restart one service and wait for it."""
        if name not in self._endpoints:
            raise StackError(f"there is no service {name!r}; the services are {', '.join(self._endpoints)}")
        self._run("restart", name)
        health.wait_healthy(self._settings, [self._endpoints[name]], lambda: None, self._say)

    def logs(self, name: str | None, lines: int, follow: bool) -> None:
        """Print the last lines of one container's log or of all, with `follow` those that come too."""
        with suppress(KeyboardInterrupt):
            self._run("logs", f"--tail={lines}", *(["-f"] if follow else []), *([name] if name else []))

    @property
    def trainer_target(self) -> str:
        """The `instance` of the stack's trainer in Prometheus."""
        return self._targets[TRAINER]

    def leak(self, *arguments: str) -> list[str]:
        """The command that switches leaks of the stack's trainer."""
        return [
            *self._command(),
            "exec",
            "-T",
            TRAINER,
            "python",
            "-m",
            "examples.leak",
            "walker",
            *arguments,
        ]

    def _reload(self, name: str, *, is_new: bool) -> None:
        """Tell a running service with SIGHUP that the files it read have changed since."""
        data = self._settings.data
        read = {
            "prometheus": (data / "prometheus" / "prometheus.yml", data / "prometheus" / "rules"),
            "alertmanager": (data / "alerting" / "alertmanager.yml", data / "alerting" / "templates"),
        }
        file = self._settings.state / "run" / f"{name}.loaded-in-container"
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        digest = fingerprint(*read[name])
        if not is_new and (not file.exists() or file.read_text(encoding="utf-8") != digest):
            self._run("kill", "-s", "HUP", name)
            self._say(f"{name} reads its changed configuration")
        configuration.write_if_changed(file, digest)

    @property
    def _checkout(self) -> Path:
        checkout = self._settings.checkout
        if checkout is None:
            raise StackError("containers are built from a clone: run make up MODE=docker there")
        return checkout

    def _container_ids(self) -> dict[str, str]:
        return {name: self._output("ps", "-q", name).strip() for name in self._endpoints}

    def _command(self) -> list[str]:
        client = _client()
        if client is None:
            raise StackError("neither `docker compose` nor docker-compose is installed; or use MODE=native")
        return [*client, "-p", PROJECT, "-f", str(self._checkout / "docker-compose.yml")]

    def _environment(self) -> dict[str, str]:
        """What docker-compose.yml refers to, whatever shell this runs in."""
        return {
            **os.environ,
            "HEAPWATCH_SECRETS": str(self._settings.token_file.parent),
            "HEAPWATCH_DASHBOARDS_URL": self._settings.dashboards_url,
            "HEAPWATCH_RUNBOOKS_URL": self._settings.runbooks_url,
        }

    def _run(self, *arguments: str) -> None:
        done = subprocess.run([*self._command(), *arguments], env=self._environment(), check=False)
        if done.returncode != 0:
            raise StackError(
                f"docker compose {arguments[0]} failed ({done.returncode}); what it said stands above"
            )

    def _output(self, *arguments: str) -> str:
        command = [*self._command(), *arguments]
        return subprocess.run(
            command, env=self._environment(), text=True, capture_output=True, check=False
        ).stdout


@functools.cache
def _client() -> tuple[str, ...] | None:
    for client in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(client[0]) and _succeeds(*client, "version"):
            return client
    return None


def _succeeds(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
