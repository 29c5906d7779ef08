"""The dashboards as Kubernetes ConfigMaps, which the sidecar of Grafana's Helm chart finds by their label."""

import json
from collections.abc import Mapping


def manifests(files: Mapping[str, str]) -> dict[str, str]:
    """One manifest a dashboard: manifest file name to YAML.

    YAML is a superset of JSON: names are written as JSON, the dashboard as a literal block.
    """
    return {name.replace(".json", ".yaml"): _manifest(name, content) for name, content in files.items()}


def _manifest(name: str, content: str) -> str:
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
