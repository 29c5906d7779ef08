"""What differs from one place to another: names, addresses, selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

VALUES = Path(__file__).resolve().parents[1] / "values.yml"
TRAINERS = "heapwatch-trainers"
RECEIVER = "heapwatch-receiver"
RECEIVER_PORT = 9095


@dataclass(frozen=True)
class Configuration:
    """One installation; docs/kubernetes.md says what each value means."""

    namespace: str
    labels: Mapping[str, str]
    trainer_labels: Mapping[str, str]
    trainer_port_name: str
    machine_nodes: Mapping[str, str]
    prometheus_url: str
    alertmanager_url: str
    dashboards_url: str
    runbooks_url: str
    secret: str
    receiver_image: str
    receiver_storage: str
    sample_image: str
    sample_profile: str

    @property
    def trainer_job(self) -> str:
        """The label `job` that a PodMonitor gives its targets."""
        return f"{self.namespace}/{TRAINERS}"

    @property
    def receiver_job(self) -> str:
        """The label `job` that a ServiceMonitor gives the pods of a service."""
        return RECEIVER


def load(namespace: str) -> Configuration:
    """The shipped values, installed in this namespace."""
    values = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    return Configuration(namespace=namespace, **values)
