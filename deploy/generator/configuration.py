"""What differs from one place to another: names, addresses, selectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

import yaml

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


def load(file: Path) -> Configuration:
    """The configuration in a YAML file.

    Raises:
        ValueError: a value is missing, unknown or empty; the message names it.

    """
    given = yaml.safe_load(file.read_text(encoding="utf-8"))
    if not isinstance(given, dict):
        raise ValueError(f"{file}: a mapping is needed")
    names = [field.name for field in fields(Configuration)]
    if wrong := sorted(set(given) ^ set(names), key=str):
        raise ValueError(
            f"{file}: missing or unknown: {', '.join(map(str, wrong))}; there are {', '.join(names)}"
        )
    if empty := [name for name, value in given.items() if not value and not name.endswith("labels")]:
        raise ValueError(f"{file}: {', '.join(empty)} must not be empty")
    if not given["trainer_labels"]:
        raise ValueError(f"{file}: trainer_labels must have a label, or every pod would be scraped")
    return Configuration(**given)
