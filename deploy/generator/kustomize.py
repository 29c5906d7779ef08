"""The Kustomize base: every object as it stands in a file, by name."""

from __future__ import annotations

from collections.abc import Mapping

from deploy.generator import dashboards, monitoring, receiver, sample, text
from deploy.generator.configuration import Configuration

SAMPLE = "sample-job.yaml"


def files(configuration: Configuration, boards: Mapping[str, str]) -> dict[str, str]:
    """File name to content.

    Args:
        configuration: of the installation.
        boards: file name to JSON of each dashboard.

    """
    config_maps = {f"dashboards/{name}": text for name, text in dashboards.manifests(boards).items()}
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
        "resources": [*objects, *sorted(config_maps)],
    }
    return {
        **{name: text.file(documents) for name, documents in objects.items()},
        **config_maps,
        SAMPLE: text.file([sample.job(configuration)]),
        "kustomization.yaml": text.file([kustomization]),
    }
