"""A jsonnet mixin: rules and dashboards for those who assemble their monitoring with jsonnet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from deploy.generator import monitoring
from deploy.generator.configuration import Configuration

MIXIN = "mixin.libsonnet"
ALERTS, RULES = "rules/alerts.json", "rules/records.json"


def files(configuration: Configuration, boards: Mapping[str, str]) -> dict[str, str]:
    """File name to content. A group with alerts stays whole: its rules are evaluated in their order."""
    groups = monitoring.rule_groups(configuration)
    alerts = [group for group in groups if any("alert" in rule for rule in group["rules"])]
    records = [group for group in groups if group not in alerts]
    dashboards = "".join(f"    {json.dumps(name)}: import 'dashboards/{name}',\n" for name in sorted(boards))
    return {
        MIXIN: (
            "{\n"
            f"  prometheusAlerts+:: {{ groups+: (import '{ALERTS}').groups }},\n"
            f"  prometheusRules+:: {{ groups+: (import '{RULES}').groups }},\n"
            "  grafanaDashboardFolder: 'Heapwatch',\n"
            f"  grafanaDashboards+:: {{\n{dashboards}  }},\n"
            "}\n"
        ),
        ALERTS: _json(alerts),
        RULES: _json(records),
        **{f"dashboards/{name}": text for name, text in boards.items()},
    }


def _json(groups: Sequence[Mapping[str, Any]]) -> str:
    return json.dumps({"groups": list(groups)}, indent=2) + "\n"
