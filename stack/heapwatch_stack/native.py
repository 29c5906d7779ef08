"""The stack as processes on this machine under supervisord."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from types import FrameType

from heapwatch import stacks
from heapwatch.runtime.own_files import make_private
from heapwatch_stack import binaries, configuration, health, preflight, state_folder
from heapwatch_stack.errors import Say, StackError
from heapwatch_stack.report import ServiceStatus
from heapwatch_stack.services import Service, environment, services
from heapwatch_stack.settings import TRAINER, Endpoint, Settings
from heapwatch_stack.state_folder import locked
from heapwatch_stack.supervision import Supervisor

# If a service ends this often while `up` waits for it, waiting longer does not help.
GIVE_UP_AFTER_EXITS = 2
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class NativeStack:
    """The stack's commands, without a Docker engine."""

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings = settings
        self._say = say
        self._supervisor = Supervisor(settings)

    def up(self) -> None:
        """Start or update everything; on failure, everything that this call started is stopped."""
        preflight.check_system(self._supervisor.socket)
        with self._locked(), _on_interruption(_interrupt):
            was_running = self._supervisor.running()
            if not was_running:
                preflight.check_ports(self._settings, self._settings.endpoints().values())
            wanted = self._prepare()
            try:
                answers_at = f"unix:{self._supervisor.socket}"
                configuration.announce(self._settings, answers_at, self._settings.targets)
                names = [service.name for service in wanted]
                if was_running:
                    started = self._update(wanted)
                else:
                    self._say(f"starting {', '.join(names)}")
                    self._supervisor.start()
                    started = set(names)
                self._wait([service.endpoint for service in wanted], started)
                health.prove_delivery(self._settings)
                self._say("an alert travels from Alertmanager to the receiver")
            except BaseException as problem:
                if not was_running:
                    self._stop()
                if isinstance(problem, KeyboardInterrupt):
                    raise StackError("interrupted: what this command has started is stopped") from None
                raise

    def running(self) -> bool:
        """Whether this state folder's supervisor answers."""
        return self._supervisor.running()

    def down(self) -> None:
        """Stop everything."""
        with self._locked():
            if self._supervisor.running():
                self._say("stopping the services")
            self._stop()

    def status(self) -> list[ServiceStatus]:
        """The status of each service."""
        running = self._supervisor.processes() if self._supervisor.running() else {}
        scraped_targets = health.targets(self._settings) if running else {}
        rows = []
        for endpoint in self._settings.endpoints().values():
            info = running.get(endpoint.name)
            state = health.supervised(self._settings, endpoint, info) if info else "stopped"
            scraped = scraped_targets.get(self._target(endpoint.name, endpoint.port), {}).get(
                "health", "unknown"
            )
            process = str(info["pid"]) if info and info["pid"] else ""
            address = self._settings.url(endpoint.name)
            rows.append(ServiceStatus(endpoint.name, address, state, scraped, process))
        return rows

    def restart(self, name: str) -> None:
        """Restart one service and wait for it."""
        with self._locked():
            wanted = self._settings.endpoints()
            if name not in wanted:
                raise StackError(f"there is no service {name!r}; the services are {', '.join(wanted)}")
            if not self._supervisor.running():
                raise StackError("the stack is not running: heapwatch up")
            self._say(f"restarting {name}")
            self._supervisor.restart(name)
            self._wait([wanted[name]], {name})

    def logs(self, name: str | None, lines: int, follow: bool) -> None:
        """Print the last lines of one or all logs; with `follow`, also new lines."""
        files = sorted(self._settings.logs.glob(f"{name or '*'}.log"))
        if not files:
            raise StackError(f"there is no log of {name or 'any service'!r} in {self._settings.logs}")
        with suppress(KeyboardInterrupt):
            completed = subprocess.run(["tail", f"-n{lines}", *(["-F"] if follow else []), *map(str, files)])
            if completed.returncode == -signal.SIGPIPE:
                raise BrokenPipeError  # as of `heapwatch logs | head`
            if completed.returncode != 0:
                raise StackError(f"the logs cannot be read: tail ended with {completed.returncode}")

    def remove_data(self) -> None:
        """Nothing to do: all data is in the state folder."""

    def start_trainer(self) -> subprocess.Popen[str]:
        """The demonstration's trainer, which this stack finds."""
        return subprocess.Popen(
            [sys.executable, "-m", "heapwatch_stack.trainer"],
            env={**os.environ, **environment(self._settings)},
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def trainer_instance(self, port: int) -> str:
        """The `instance` in Prometheus of a trainer on this port."""
        return self._target(TRAINER, port)

    def _target(self, name: str, port: int) -> str:
        """The `instance` of a service: a trainer that listens on every address uses the machine's name."""
        everywhere = self._settings.bind != self._settings.host
        host = socket.gethostname() if name == TRAINER and everywhere else self._settings.host
        return f"{host}:{port}"

    def _prepare(self) -> list[Service]:
        """Do everything that can fail before a process is started."""
        programs = binaries.find(self._settings, self._say)
        grafana = binaries.find_grafana(self._settings, self._say)
        for name, binary in (("prometheus", programs.prometheus), ("alertmanager", programs.alertmanager)):
            self._say(f"{name} {binary.version}: {binary.source}")
        self._say(f"dashboards: {f'Grafana, {grafana.source}' if grafana else 'the built-in viewer'}")
        configuration.lay_out(self._settings)
        preflight.check_configuration(self._settings, programs)
        self._say("the configuration of Prometheus and Alertmanager is valid")
        selected = services(self._settings, programs, grafana)
        self._supervisor.configure(selected)
        return selected

    def _update(self, wanted: list[Service]) -> set[str]:
        """Restart the services that have changed since the last `up`; the others reload their files."""
        restarted = set(self._supervisor.apply())
        for name in sorted(restarted):
            self._say(f"{name} restarted: it changed")
        for service in wanted:
            if service.reloads and service.name not in restarted:
                self._supervisor.hang_up(service.name)
                self._say(f"{service.name} reads its configuration")
        return restarted

    def _wait(self, wanted: list[Endpoint], started: set[str]) -> None:
        ended: dict[str, set[int]] = {endpoint.name: set() for endpoint in wanted}

        def watch() -> None:
            for name, info in self._supervisor.processes().items():
                if name in ended and info["statename"] in ("BACKOFF", "EXITED"):
                    ended[name].add(info["stop"])
                    if len(ended[name]) >= GIVE_UP_AFTER_EXITS:
                        raise StackError(f"{name} does not stay up: {self._last_line(name)}")

        say = self._say if started else (lambda _: None)
        health.wait_healthy(self._settings, wanted, watch, say)
        if started:
            self._say("waiting for Prometheus's first scrape of each")
        targets = {endpoint.name: self._target(endpoint.name, endpoint.port) for endpoint in wanted}
        health.wait_scraped(self._settings, targets)

    def _last_line(self, name: str) -> str:
        file = self._settings.logs / f"{name}.log"
        tail = subprocess.run(["tail", "-n20", file], capture_output=True, text=True, timeout=10, check=False)
        lines = [line.strip() for line in tail.stdout.splitlines() if line.strip()]
        return f"{lines[-1] if lines else 'no output'} (see {file})"

    def _stop(self) -> None:
        with _on_interruption(signal.SIG_IGN):  # a second Ctrl-C must not leave half of the stack
            stacks.withdraw(self._settings.state)
            self._supervisor.shut_down()

    def _locked(self) -> AbstractContextManager[None]:
        """One `up`, `down` or `restart` at a time."""
        state_folder.make(self._settings.state)
        make_private(self._settings.state / "run")
        return locked(self._settings.state / "run" / "lock")


@contextmanager
def _on_interruption(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> Iterator[None]:
    """Handle SIGTERM and SIGHUP in the same way as Ctrl-C."""
    before = {number: signal.signal(number, handler) for number in INTERRUPTIONS}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
