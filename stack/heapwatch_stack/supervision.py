"""supervisord: its configuration, its start and its RPC. If it is killed, its services end with it."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
import sys
import time
import xmlrpc.client
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport, UnixStreamHTTPConnection

from heapwatch.runtime.own_files import replace
from heapwatch_stack.errors import StackError
from heapwatch_stack.services import Service, environment
from heapwatch_stack.settings import Settings

WATCHDOG = "watchdog"
ANSWER_SECONDS = 120  # stopping a service takes up to 20 s
START_SECONDS = 60
STOP_SECONDS = 60
# characters that supervisord's configuration treats as a comment or the end of a value
UNWRITABLE = re.compile(r"\s[;#]|\n")


class Supervisor:
    """The supervisord of a state folder; `socket` is its Unix socket."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._configuration = settings.etc / "supervisord.conf"
        self.socket = settings.state / "run" / "sock"

    def configure(self, services: Iterable[Service]) -> None:
        """Write the configuration; `apply` makes a running supervisord read it."""
        replace(self._configuration, self._render(services))

    def running(self) -> bool:
        """Whether supervisord answers."""
        try:
            self.pid()
        except (OSError, xmlrpc.client.Error):
            return False
        return True

    def pid(self) -> int:
        """The running supervisord's process id."""
        return int(self._rpc().getPID())

    def start(self) -> None:
        """Start supervisord in the background with every configured service; raises StackError."""
        self.socket.unlink(missing_ok=True)
        command = [sys.executable, "-m", "supervisor.supervisord", "-c", str(self._configuration)]
        # Services must not inherit variables of this shell.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("HEAPWATCH_")}
        try:
            completed = subprocess.run(
                command,
                env=inherited,
                cwd=self._settings.checkout or self._settings.state,
                start_new_session=True,
                text=True,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=START_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise StackError(f"the supervisor did not start within {START_SECONDS} s") from None
        if completed.returncode != 0:
            lines = (completed.stderr or completed.stdout).strip().splitlines()
            raise StackError(f"the supervisor did not start: {lines[0] if lines else completed.returncode}")
        deadline = time.monotonic() + 15
        while not self.running():
            if time.monotonic() > deadline:
                raise StackError(
                    f"the supervisor did not answer; see {self._settings.logs / 'supervisord.log'}"
                )
            time.sleep(0.05)

    def apply(self) -> list[str]:
        """Make supervisord apply its configuration file; returns the services that it (re)started."""
        rpc = self._rpc()
        ((added, changed, removed),) = rpc.reloadConfig()
        for name in [*changed, *removed]:
            rpc.stopProcessGroup(name)
            rpc.removeProcessGroup(name)
        for name in [*added, *changed]:
            rpc.addProcessGroup(name)
        return sorted([*added, *changed])

    def processes(self) -> dict[str, dict[str, Any]]:
        """State of each service in supervisord: statename, pid, start, stop, spawnerr and more."""
        return {info["name"]: info for info in self._rpc().getAllProcessInfo()}

    def restart(self, name: str) -> None:
        """Stop and start one service."""
        rpc = self._rpc()
        rpc.stopProcessGroup(name)
        rpc.startProcess(name, False)

    def hang_up(self, name: str) -> None:
        """Send SIGHUP, on which Prometheus and Alertmanager reload their configuration."""
        self._rpc().signalProcess(name, "HUP")

    def shut_down(self) -> None:
        """Stop every service and supervisord, if it runs; StackError if it has not ended in STOP_SECONDS."""
        try:
            pid = self.pid()
            self._rpc().shutdown()
        except (OSError, xmlrpc.client.Error):
            return
        deadline = time.monotonic() + STOP_SECONDS
        while Path(f"/proc/{pid}").exists():
            if time.monotonic() > deadline:
                raise StackError(f"the supervisor (process {pid}) has not ended in {STOP_SECONDS} s")
            time.sleep(0.05)

    def _rpc(self) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{self.socket}")
        transport._get_connection = self._connection
        return cast(Any, xmlrpc.client.ServerProxy("http://127.0.0.1", transport=transport)).supervisor

    def _connection(self) -> _Connection:
        connection = _Connection("localhost")
        connection.socketfile = str(self.socket)
        return connection

    def _render(self, services: Iterable[Service]) -> str:
        logs, run = self._settings.logs, self._settings.state / "run"
        watchdog = (sys.executable, "-m", "heapwatch_stack.watchdog")
        sections = [
            _section("unix_http_server", file=self.socket, chmod="0700"),
            _section(
                "supervisord",
                logfile=logs / "supervisord.log",
                logfile_maxbytes="2MB",
                logfile_backups=2,
                pidfile=run / "supervisord.pid",
                childlogdir=logs,
                umask="077",
            ),
            _section(
                "rpcinterface:supervisor",
                **{"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"},
            ),
            *(self._program(s.name, s.command, s.environment, 100 + n) for n, s in enumerate(services)),
            self._program(WATCHDOG, watchdog, environment(self._settings), 999),
        ]
        return "\n".join(sections)

    def _program(self, name: str, command: tuple[str, ...], environment: Any, priority: int) -> str:
        return _section(
            f"program:{name}",
            # A half of a stack is worse than none: the service ends with supervisord.
            command=shlex.join(["setpriv", "--pdeathsig", "TERM", *command]),
            directory=self._settings.checkout or self._settings.state,
            environment=",".join(f"{key}={_quoted(key, value)}" for key, value in environment.items()),
            priority=priority,
            autorestart="true",
            # A service that ends sooner is started again with a growing pause, up to a thousand times.
            startsecs=5,
            startretries=1000,
            stopasgroup="true",
            killasgroup="true",
            stopwaitsecs=20,
            redirect_stderr="true",
            stdout_logfile=self._settings.logs / f"{name}.log",
            stdout_logfile_maxbytes="5MB",
            stdout_logfile_backups=2,
        )


class _Connection(UnixStreamHTTPConnection):  # type: ignore[misc]
    """A connection to supervisord with a timeout for each answer."""

    def connect(self) -> None:
        """Connect; raises OSError."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(ANSWER_SECONDS)
        self.sock.connect(self.socketfile)


def _section(header: str, **values: object) -> str:
    lines = []
    for key, value in values.items():
        if UNWRITABLE.search(str(value)):
            raise StackError(f"the supervisor cannot take a line break, ' ;' or ' #' in {header}: {value}")
        lines.append(
            f"{key} = {str(value).replace('%', '%%')}"
        )  # supervisord expands %(name)s in every value
    return "\n".join([f"[{header}]", *lines, ""])


def _quoted(name: str, value: str) -> str:
    for quote in ('"', "'"):
        if quote not in value:
            return f"{quote}{value}{quote}"
    raise StackError(f"the supervisor cannot take both kinds of quotes in {name}: {value}")
