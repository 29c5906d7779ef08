"""The settings of the stack from the environment: folders, addresses, ports, services."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from heapwatch import data, stacks
from heapwatch.judge.limits import PROFILE_NAMES
from heapwatch.runtime.environment import KNOWN, RECEIVER_PREFIX, unread
from heapwatch_stack.errors import StackError

_EXAMPLE = "examples/walker/__main__.py"
TRAINER = "walker-training-app"
# In the order of their start: the variable of the port, its default, and the path of `Endpoint.health`.
_SERVICES = {
    "prometheus": ("HEAPWATCH_PROMETHEUS_PORT", 9090, "/-/ready"),
    "alertmanager": ("HEAPWATCH_ALERTMANAGER_PORT", 9093, "/-/ready"),
    "receiver": ("HEAPWATCH_RECEIVER_PORT", 9095, "/healthz"),
    "dashboards": ("HEAPWATCH_DASHBOARDS_PORT", 3009, "/healthz"),
    TRAINER: ("HEAPWATCH_TRAINER_PORT", 7777, "/readyz"),
}


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
        services: every service by name, in the order of their start, on `bind`.
        environment: the environment variables, for the notifications and the receiver.

    """

    data: Path
    checkout: Path | None
    state: Path
    targets: Path
    bind: str
    profile: str
    services: Mapping[str, Endpoint]
    environment: Mapping[str, str]

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Settings:
        """Read `HEAPWATCH_*`; raises StackError with the name of a wrong variable and what is allowed."""
        refuse_unknown(environment)
        # PROFILE, as for make, where the other is not set.
        variable = next(filter(environment.get, ("HEAPWATCH_PROFILE", "PROFILE")), "")
        profile = environment.get(variable, "default")
        if profile not in PROFILE_NAMES:
            raise StackError(f"{variable} is {profile!r}; it may be one of {', '.join(PROFILE_NAMES)}")
        chosen = environment.get("HEAPWATCH_STATE")
        state = Path(chosen).absolute() if chosen else stacks.default_state(environment)
        return cls(
            data=data.folder(),
            checkout=_checkout(environment, state),
            state=state,
            targets=Path(environment.get("HEAPWATCH_TARGETS_DIR") or state / "targets").absolute(),
            bind=environment.get("HEAPWATCH_BIND") or "127.0.0.1",
            profile=profile,
            services=_services(environment),
            environment=environment,
        )

    @property
    def host(self) -> str:
        """The address at which services on `bind` are reached from this machine."""
        return "127.0.0.1" if self.bind in ("0.0.0.0", "::", "") else self.bind

    def url(self, service: str) -> str:
        """`http://` address of one of the services, as seen from this machine."""
        return f"http://{self.host}:{self.services[service].port}"

    @property
    def dashboards_url(self) -> str:
        """The prefix of the dashboard links in alerts, without a slash at the end."""
        return self.url("dashboards")

    @property
    def runbooks_url(self) -> str:
        """The address of the runbooks, which the receiver serves."""
        return f"{self.url('receiver')}/runbooks"

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
        """The services that are started: the example trainer only in a clone."""
        return {name: one for name, one in self.services.items() if self.checkout or name != TRAINER}


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raise StackError for the first unknown `HEAPWATCH_*` name, with the nearest known name."""
    if not any(name.startswith(RECEIVER_PREFIX) for name in environment.keys() - KNOWN):
        problem = unread(environment)
    else:
        from heapwatch_receiver.settings import Settings  # needs pydantic: imported for a receiver's name

        problem = unread(environment, {RECEIVER_PREFIX + field.upper() for field in Settings.model_fields})
    if problem:
        raise StackError(problem)


def _services(environment: Mapping[str, str]) -> dict[str, Endpoint]:
    services: dict[str, Endpoint] = {}
    for service, (name, default, health) in _SERVICES.items():
        text = environment.get(name) or str(default)
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text) <= 65535:
            raise StackError(f"{name} is {text!r}; it must be a port number from 1 to 65535")
        if other := next((one for one in services.values() if one.port == int(text)), None):
            raise StackError(f"{other.port_variable} and {name} are both {text}: each needs its own port")
        services[service] = Endpoint(service, int(text), name, health)
    return services


def _checkout(environment: Mapping[str, str], state: Path) -> Path | None:
    path = environment.get("HEAPWATCH_CHECKOUT")
    if not path:
        parent = state.parent  # of the state folder of `make`
        return parent if (parent / _EXAMPLE).is_file() else None
    checkout = Path(path).absolute()
    if not (checkout / "docker-compose.yml").is_file():
        raise StackError(f"HEAPWATCH_CHECKOUT is {path!r}, which is not a clone of heapwatch")
    return checkout
