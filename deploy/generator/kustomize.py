"""The Kustomize base: every object as it stands in a file, by name; the dashboards as ConfigMaps."""

from __future__ import annotations

import json
from collections.abc import Mapping

from deploy.generator import monitoring, text
from deploy.generator.configuration import Configuration

SAMPLE = "sample-job.yaml"


def files(configuration: Configuration, boards: Mapping[str, str]) -> dict[str, str]:
    """File name to content; `boards` is the same of the dashboards."""
    config_maps = {
        f"dashboards/{name.replace('.json', '.yaml')}": _config_map(name, board)
        for name, board in boards.items()
    }
    objects = {
        "rules.yaml": [monitoring.rule(configuration)],
        "discovery.yaml": monitoring.discovery(configuration),
        "alertmanager.yaml": [monitoring.alertmanager_config(configuration)],
        "receiver.yaml": text.objects("receiver.yaml", configuration),
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
        SAMPLE: text.file(text.objects(SAMPLE, configuration)),
        "kustomization.yaml": text.file([kustomization]),
    }


def _config_map(name: str, content: str) -> str:
    """Found by the sidecar of Grafana's Helm chart by its label; names as JSON, the dashboard as a block."""
    block = "".join(f"    {line}\n" for line in content.splitlines())
    return (
        "apiVersion: v1\n"
        "kind: ConfigMap\n"
        "metadata:\n"
        f"  name: {json.dumps(name.removesuffix('.json'))}\n"
        "  labels:\n"
        '    grafana_dashboard: "1"\n'
        "  annotations:\n"
        "    grafana_folder: Heapwatch\n"
        "data:\n"
        f"  {json.dumps(name)}: |\n"
        f"{block}"
    )
