"""The Kustomize base: every object as it stands in a file, by name."""

from __future__ import annotations

from pathlib import Path

from deploy.generator import monitoring, receiver, sample, text
from deploy.generator.configuration import Configuration

SAMPLE = "sample-job.yaml"
# Written by `python -m heapwatch.dashboards`.
DASHBOARDS = Path("dashboards")


def files(configuration: Configuration, dashboards: list[str]) -> dict[str, str]:
    """File name to content.

    Args:
        configuration: of the installation.
        dashboards: names of the files in DASHBOARDS.

    """
    objects = {
        "rules.yaml": [monitoring.rule(configuration)],
        "discovery.yaml": [monitoring.pod_monitor(configuration), monitoring.service_monitor(configuration)],
        "alertmanager.yaml": [monitoring.alertmanager_config(configuration)],
        "receiver.yaml": receiver.manifests(configuration),
    }
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": configuration.namespace,
        "resources": [*objects, *(f"{DASHBOARDS}/{name}" for name in sorted(dashboards))],
    }
    return {
        **{name: text.file(documents) for name, documents in objects.items()},
        SAMPLE: text.file([sample.job(configuration)]),
        "kustomization.yaml": text.file([kustomization]),
    }
