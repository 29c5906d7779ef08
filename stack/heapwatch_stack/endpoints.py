"""The address of each service of the stack."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heapwatch_stack.settings import Settings

TRAINER = "walker-training-app"


@dataclass(frozen=True)
class Endpoint:
    """A service's address on this machine; `health` is the path that responds with 200 when it is healthy."""

    name: str
    port: int
    port_variable: str
    health: str


def endpoints(settings: Settings, *, grafana: bool) -> dict[str, Endpoint]:
    """Every service by name, in the order of their start; the example trainer only in a clone."""
    ports = settings.ports
    listed = [
        Endpoint("prometheus", ports.prometheus, "HEAPWATCH_PROMETHEUS_PORT", "/-/ready"),
        Endpoint("alertmanager", ports.alertmanager, "HEAPWATCH_ALERTMANAGER_PORT", "/-/ready"),
        Endpoint("receiver", ports.receiver, "HEAPWATCH_RECEIVER_PORT", "/healthz"),
        Endpoint(
            "dashboards",
            ports.dashboards,
            "HEAPWATCH_DASHBOARDS_PORT",
            "/api/health" if grafana else "/healthz",
        ),
    ]
    if settings.checkout:
        listed.append(Endpoint(TRAINER, ports.trainer, "HEAPWATCH_TRAINER_PORT", "/readyz"))
    return {endpoint.name: endpoint for endpoint in listed}


def has_grafana(settings: Settings) -> bool:
    """Whether the last `up` of the native stack chose Grafana."""
    return grafana_mark(settings).exists()


def grafana_mark(settings: Settings) -> Path:
    """The file that says so."""
    return settings.state / "run" / "grafana"
