"""The settings of the stack from the environment: folders, addresses, ports, services."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heapwatch import data, stacks
from heapwatch.analysis.limits import PROFILE_NAMES
from heapwatch.runtime.environment import KNOWN, RECEIVER_PREFIX, unread
from heapwatch_stack.errors import StackError

# In the order of Ports' fields.
DEFAULT_PORTS = {
    "HEAPWATCH_TRAINER_PORT": 7777,
    "HEAPWATCH_PROMETHEUS_PORT": 9090,
    "HEAPWATCH_ALERTMANAGER_PORT": 9093,
    "HEAPWATCH_RECEIVER_PORT": 9095,
    "HEAPWATCH_DASHBOARDS_PORT": 3009,
}
_EXAMPLE = "examples/walker/__main__.py"
TRAINER = "walker-training-app"


@dataclass(frozen=True)
class Ports:
    """TCP ports of the services on `Settings.bind`."""

    trainer: int
    prometheus: int
    alertmanager: int
    receiver: int
    dashboards: int


@dataclass(frozen=True)
class Endpoint:
    """A service's address on this machine; `health` is the path that responds with 200 when it is healthy."""

    name: str
    port: int
    port_variable: str
    health: str


@dataclass(frozen=True)
class Settings:
    """One stack.

    Attributes:
        data: folder of the shipped configuration.
        checkout: a clone with the example trainer and docker-compose.yml; None without one.
        state: the folder for everything that the stack writes.
        targets: the folder of the trainers' target files.
        environment: the environment variables, for the notifications and the receiver.

    """

    data: Path
    checkout: Path | None
    state: Path
    targets: Path
    bind: str
    profile: str
    ports: Ports
    environment: Mapping[str, str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read `HEAPWATCH_*`; raises StackError with the name of a wrong variable and what is allowed."""
        refuse_unknown(environment)
        profile = environment.get("HEAPWATCH_PROFILE") or "default"
        if profile not in PROFILE_NAMES:
            raise StackError(f"HEAPWATCH_PROFILE is {profile!r}; it may be one of {', '.join(PROFILE_NAMES)}")
        chosen = environment.get("HEAPWATCH_STATE")
        state = Path(chosen).absolute() if chosen else stacks.default_state(environment)
        return cls(
            data=data.folder(),
            checkout=_checkout(environment, state),
            state=state,
            targets=Path(environment.get("HEAPWATCH_TARGETS_DIR") or state / "targets").absolute(),
            bind=environment.get("HEAPWATCH_BIND") or "127.0.0.1",
            profile=profile,
            ports=_ports(environment),
            environment=environment,
        )

    @property
    def host(self) -> str:
        """The address at which services on `bind` are reached from this machine."""
        return "127.0.0.1" if self.bind in ("0.0.0.0", "::", "") else self.bind

    def url(self, port: int) -> str:
        """`http://` address of one of the stack's ports, as seen from this machine."""
        return f"http://{self.host}:{port}"

    @property
    def dashboards_url(self) -> str:
        """The prefix of the dashboard links in alerts, without a slash at the end."""
        return self.url(self.ports.dashboards)

    @property
    def runbooks_url(self) -> str:
        """The address of the runbooks, which the receiver serves."""
        return f"{self.url(self.ports.receiver)}/runbooks"

    @property
    def folder(self) -> Path:
        """The working directory of services and restart commands: the clone, else the state folder."""
        return self.checkout or self.state

    @property
    def cache(self) -> Path:
        """The folder of downloads, shared by all stacks of this user."""
        return Path(self.environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "heapwatch"

    @property
    def etc(self) -> Path:
        """The configuration files that the services read."""
        return self.state / "etc"

    @property
    def logs(self) -> Path:
        """The folder with one log file for each service."""
        return self.state / "logs"

    @property
    def token_file(self) -> Path:
        """The file of the token for everything that acts."""
        return self.state / "secrets" / "token"

    @property
    def webhook_token_file(self) -> Path:
        """The file of the token that Alertmanager sends, derived from the secret, valid for nothing else."""
        return self.state / "secrets" / "webhook-token"

    @property
    def grafana_password_file(self) -> Path:
        """The file of the Grafana administrator's password; the viewer has none."""
        return self.state / "secrets" / "grafana-admin-password"

    def endpoints(self) -> dict[str, Endpoint]:
        """Every service by name, in the order of their start; the example trainer only in a clone."""
        ports = self.ports
        listed = [
            Endpoint("prometheus", ports.prometheus, "HEAPWATCH_PROMETHEUS_PORT", "/-/ready"),
            Endpoint("alertmanager", ports.alertmanager, "HEAPWATCH_ALERTMANAGER_PORT", "/-/ready"),
            Endpoint("receiver", ports.receiver, "HEAPWATCH_RECEIVER_PORT", "/healthz"),
            Endpoint("dashboards", ports.dashboards, "HEAPWATCH_DASHBOARDS_PORT", "/healthz"),
        ]
        if self.checkout:
            listed.append(Endpoint(TRAINER, ports.trainer, "HEAPWATCH_TRAINER_PORT", "/readyz"))
        return {endpoint.name: endpoint for endpoint in listed}


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raise StackError for the first unknown `HEAPWATCH_*` name, with the nearest known name."""
    if not any(name.startswith(RECEIVER_PREFIX) for name in environment.keys() - KNOWN):
        problem = unread(environment)
    else:
        from heapwatch_receiver.settings import Settings  # needs pydantic: imported for a receiver's name

        problem = unread(environment, {RECEIVER_PREFIX + field.upper() for field in Settings.model_fields})
    if problem:
        raise StackError(problem)


def _ports(environment: Mapping[str, str]) -> Ports:
    chosen: dict[int, str] = {}
    for name, default in DEFAULT_PORTS.items():
        text = environment.get(name) or str(default)
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= 65535:
            raise StackError(f"{name} is {text!r}; it must be a port number from 1 to 65535")
        port = int(text)
        if port in chosen:
            raise StackError(f"{chosen[port]} and {name} are both {port}: each service needs its own port")
        chosen[port] = name
    return Ports(*chosen)


def _checkout(environment: Mapping[str, str], state: Path) -> Path | None:
    chosen = environment.get("HEAPWATCH_CHECKOUT")
    if not chosen:
        around = state.parent  # of the state folder of `make`
        return around if (around / _EXAMPLE).is_file() else None
    checkout = Path(chosen).absolute()
    if not (checkout / "docker-compose.yml").is_file():
        raise StackError(f"HEAPWATCH_CHECKOUT is {chosen!r}, which is not a clone of heapwatch")
    return checkout
