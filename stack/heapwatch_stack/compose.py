"""The stack in containers, with Docker Compose."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from heapwatch import stacks
from heapwatch.text.terminal import plain
from heapwatch_stack import configuration, containers, health, preflight, state_folder
from heapwatch_stack.alertmanager import channels, hide
from heapwatch_stack.configuration import fingerprint
from heapwatch_stack.errors import Say, StackError
from heapwatch_stack.report import ServiceStatus
from heapwatch_stack.settings import TRAINER, Settings

_RUN_SECONDS = 3600.0  # images may have to be built
_ANSWER_SECONDS = 300.0

# Images that are built here; the others are Prometheus's, Alertmanager's and Grafana's own.
OWN_IMAGES = ("heapwatch/configuration", "heapwatch/receiver", "heapwatch/walker-training-app")
# If a container was restarted this often while the stack starts, waiting longer does not help.
MOST_RESTARTS = 2
RELOAD_PATIENCE = 20.0


def engine_answers() -> bool:
    """Whether a Docker engine answers and a Compose client is installed."""
    return shutil.which("docker") is not None and _succeeds("docker", "info") and _client() is not None


class ComposeStack:
    """The stack's commands, with docker-compose.yml."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._endpoints = settings.endpoints()
        self._targets = containers.ADDRESSES | {TRAINER: f"{TRAINER}:7777"}

    def up(self) -> None:
        """Build and start; returns when every container is healthy and scraped."""
        if not engine_answers():
            raise StackError("no Docker engine answers (or it has no Compose): start it, or use MODE=native")
        state_folder.make(self._settings.state)
        configuration.make_secrets(self._settings)
        people = channels(self._settings.environment)
        containers.hand_over(people, self._settings.token_file.parent)
        before = self._container_ids()
        if not any(before.values()):
            preflight.check_ports(self._settings, self._endpoints.values())
        try:
            try:
                self._run("up", "-d", "--build", "--remove-orphans")
            finally:  # after a failure, this container's log has the reason
                self._await_configuration()
            say = self._say if before != self._container_ids() else (lambda _: None)
            watch = self._refuse_restarts
            health.wait_healthy(self._settings, self._endpoints.values(), watch, say)
            for name in ("prometheus", "alertmanager"):
                if before.get(name) == self._container_ids().get(name):
                    self._reload(name)
            health.wait_scraped(self._settings, self._targets)
            health.prove_delivery(self._settings)
            # Prometheus in a container cannot reach loopback addresses of this machine.
            answers_at = f"tcp:{self._settings.host}:{self._endpoints['prometheus'].port}"
            configuration.announce(self._settings, answers_at, targets=None)
        except BaseException as problem:
            if not any(before.values()):
                self.down()
            if isinstance(problem, KeyboardInterrupt):
                raise StackError("interrupted: what this command has started is stopped") from None
            raise

    def down(self) -> None:
        """Stop and remove the containers; volumes stay."""
        stacks.withdraw(self._settings.state)
        self._run("down", "--remove-orphans")

    def remove_data(self) -> None:
        """Remove the volumes, and the images built here if no container of another clone uses them."""
        self._run("down", "--volumes")
        for image in OWN_IMAGES:
            _ended(["docker", "image", "rm", image], stderr=subprocess.PIPE)

    def status(self) -> list[ServiceStatus]:
        """The status of each service."""
        scraped_targets = health.targets(self._settings)
        rows = []
        for name, container in self._container_ids().items():
            endpoint = self._endpoints[name]
            state = health.condition(self._settings, endpoint) if container else "stopped"
            scraped = scraped_targets.get(self._targets[name], {}).get("health", "unknown")
            address = self._settings.url(endpoint.name)
            rows.append(ServiceStatus(name, address, state, scraped, container[:12]))
        return rows

    def restart(self, name: str) -> None:
        """Restart one service and wait for it."""
        if name not in self._endpoints:
            raise StackError(f"there is no service {name!r}; the services are {', '.join(self._endpoints)}")
        self._run("restart", name)
        health.wait_healthy(self._settings, [self._endpoints[name]], lambda: None, self._say)

    def logs(self, name: str | None, lines: int, follow: bool) -> None:
        """Print the last lines of one or all logs; with `follow`, also new lines."""
        with suppress(KeyboardInterrupt):
            self._run("logs", f"--tail={lines}", *(["-f"] if follow else []), *([name] if name else []))

    def start_trainer(self) -> subprocess.Popen[str]:
        """The demonstration's trainer, in the example's container: Prometheus does not reach the host's."""
        return subprocess.Popen(
            [*self._command(), "exec", "-T", TRAINER, "python", "-m", "heapwatch_stack.trainer"],
            env=self._environment(),
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def trainer_instance(self, port: int) -> str:
        """The `instance` in Prometheus of a trainer on this port of that container."""
        return f"{TRAINER}:{port}"

    def _await_configuration(self) -> None:
        """Wait until the container that fills the volumes has ended; StackError if it failed."""
        for container in self._output("ps", "--all", "-q", "configuration").split()[:1]:
            if _output("docker", "wait", container) != "0":
                raise StackError(f"the configuration cannot be written: {self._last_line(container)}")

    def _refuse_restarts(self) -> None:
        """Raise StackError, with the last line of its log, for a container that ends after each start."""
        for name, container in self._container_ids().items():
            if not container:
                continue
            count = _output("docker", "inspect", "--format", "{{.RestartCount}}", container)
            if count.isdigit() and int(count) >= MOST_RESTARTS:
                raise StackError(f"{name} ends as soon as it is started: {self._last_line(container)}")

    def _reload(self, name: str) -> None:
        """Make a running service reload its files; StackError if it rejects them.

        The signal is sent inside the container: `docker kill` would mark it as stopped by the user, which
        disables its restart policy.
        """
        sent = time.time()
        self._run("exec", "-T", name, "sh", "-c", "kill -HUP 1")
        try:
            health.wait_reloaded(self._settings, self._endpoints[name], sent, RELOAD_PATIENCE)
        except StackError as error:
            raise StackError(f"{error}: {self._last_line(self._container_ids()[name])}") from None

    def _last_line(self, container: str) -> str:
        completed = _ended(["docker", "logs", "--tail", "1", container], stderr=subprocess.PIPE)
        people = channels(self._settings.environment)
        return plain(hide((completed.stderr or completed.stdout).strip(), people), 300)

    def _container_ids(self) -> dict[str, str]:
        return {name: self._output("ps", "-q", name).strip() for name in self._endpoints}

    def _command(self) -> list[str]:
        client, checkout = _client(), self._settings.checkout
        if client is None:
            raise StackError("neither `docker compose` nor docker-compose is installed; or use MODE=native")
        if checkout is None:
            raise StackError("containers are built from a clone: run make up MODE=docker there")
        # Each clone and each state folder has its own stack.
        project = f"heapwatch-{hashlib.sha256(str(self._settings.state).encode()).hexdigest()[:8]}"
        return [*client, "-p", project, "-f", str(checkout / "docker-compose.yml")]

    def _environment(self) -> dict[str, str]:
        """The variables of docker-compose.yml."""
        secrets = self._settings.token_file.parent
        return {
            **os.environ,
            "HEAPWATCH_STATE": str(self._settings.state),
            "HEAPWATCH_PROFILE": self._settings.profile,
            # A changed secret changes it, so Compose makes the containers that read secrets anew.
            "REVISION": fingerprint(*(secrets / name for name in containers.READERS)),
        }

    def _run(self, *arguments: str) -> None:
        following = "-f" in arguments  # until Ctrl-C
        completed = _ended(
            [*self._command(), *arguments],
            None if following else _RUN_SECONDS,
            env=self._environment(),
            stdout=None,
        )
        if completed.returncode != 0:
            raise StackError(
                f"docker compose {arguments[0]} failed ({completed.returncode}); see its output above"
            )

    def _output(self, *arguments: str) -> str:
        command = [*self._command(), *arguments]
        return _ended(command, env=self._environment(), stderr=subprocess.PIPE).stdout


@functools.cache
def _client() -> tuple[str, ...] | None:
    for client in (("docker", "compose"), ("docker-compose",)):
        if shutil.which(client[0]) and _succeeds(*client, "version"):
            return client
    return None


def _output(*command: str) -> str:
    return _ended(command, stderr=subprocess.PIPE).stdout.strip()


def _ended(
    command: Sequence[str], seconds: float | None = _ANSWER_SECONDS, **options: Any
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, text=True, check=False, timeout=seconds, **{"stdout": subprocess.PIPE, **options}
        )
    except subprocess.TimeoutExpired:
        raise StackError(f"{' '.join(command[:3])} has not ended within {seconds:g} s") from None


def _succeeds(*command: str) -> bool:
    try:
        return _ended(command, 10, stderr=subprocess.PIPE).returncode == 0
    except (OSError, StackError):
        return False
