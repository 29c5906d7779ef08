"""Objects of the Prometheus operator: what is scraped, which rules hold, where alerts go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.generator import rules, text
from deploy.generator.configuration import RECEIVER, RECEIVER_PORT, Configuration

Manifest = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
WEBHOOK_TOKEN_KEY = "webhook-token"
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')


def _metadata(configuration: Configuration) -> Manifest:
    """Name, namespace and labels; those of the configuration are what the operator selects by."""
    own = {"app.kubernetes.io/name": "heapwatch", "app.kubernetes.io/part-of": "heapwatch"}
    return {
        "name": "heapwatch",
        "namespace": configuration.namespace,
        "labels": {**own, **configuration.labels},
    }


def rule_groups(configuration: Configuration) -> list[dict[str, Any]]:
    """The native stack's rules for these names, without those about Prometheus and Alertmanager."""
    return rules.groups(
        ROOT / "prometheus" / "rules",
        {"trainer": configuration.trainer_job, "stack": configuration.receiver_job},
        # By default an AlertmanagerConfig is shown the alerts of its own namespace alone.
        {"namespace": configuration.namespace},
        configuration.dashboards_url,
        configuration.runbooks_url,
        _prometheus()["global"]["evaluation_interval"],
    )


def rule(configuration: Configuration) -> Manifest:
    """The PrometheusRule."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": _metadata(configuration),
        "spec": {"groups": rule_groups(configuration)},
    }


def discovery(configuration: Configuration) -> list[Manifest]:
    """What is scraped: trainers and the receiver, as the native stack scrapes them."""
    prometheus = _prometheus()
    (trainer,) = (job for job in prometheus["scrape_configs"] if job["job_name"] == "trainer")
    return text.objects("discovery.yaml", configuration, prometheus["global"] | trainer)


def alertmanager_config(configuration: Configuration) -> Manifest:
    """The native stack's routes; alerts then go on to what the cluster's own configuration says."""
    native = yaml.safe_load((ROOT / "alerting" / "alertmanager.yml").read_text(encoding="utf-8"))
    return {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": _metadata(configuration),
        "spec": {
            "route": _route(native["route"]),
            "inhibitRules": [
                {
                    "sourceMatch": _matchers(rule["source_matchers"]),
                    "targetMatch": _matchers(rule["target_matchers"]),
                    "equal": rule["equal"],
                }
                for rule in native["inhibit_rules"]
            ],
            "receivers": [_receiver(receiver, configuration) for receiver in native["receivers"]],
        },
    }


def _prometheus() -> dict[str, Any]:
    configuration: dict[str, Any] = yaml.safe_load(
        (ROOT / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    )
    return configuration


def _route(native: Mapping[str, Any]) -> Manifest:
    names = {
        "receiver": "receiver",
        "group_by": "groupBy",
        "group_wait": "groupWait",
        "group_interval": "groupInterval",
        "repeat_interval": "repeatInterval",
        "continue": "continue",
    }
    route: Manifest = {ours: native[theirs] for theirs, ours in names.items() if theirs in native}
    if "matchers" in native:
        route["matchers"] = _matchers(native["matchers"])
    if "routes" in native:
        route["routes"] = [_route(child) for child in native["routes"]]
    return route


def _matchers(texts: list[str]) -> list[Manifest]:
    matchers = []
    for written in texts:
        match = _MATCHER.fullmatch(written)
        if match is None:
            raise ValueError(f"alertmanager.yml: {written} is no matcher")
        matchers.append({"name": match[1], "matchType": match[2], "value": match[3]})
    return matchers


def _receiver(native: Mapping[str, Any], configuration: Configuration) -> Manifest:
    if "webhook_configs" not in native:
        return {"name": native["name"]}
    return {
        "name": native["name"],
        "webhookConfigs": [
            {
                "url": f"http://{RECEIVER}.{configuration.namespace}.svc:{RECEIVER_PORT}/alerts",
                "sendResolved": webhook.get("send_resolved", True),
                "maxAlerts": webhook["max_alerts"],
                "httpConfig": {
                    "followRedirects": webhook["http_config"]["follow_redirects"],
                    "authorization": {
                        "type": webhook["http_config"]["authorization"]["type"],
                        "credentials": {"name": configuration.secret, "key": WEBHOOK_TOKEN_KEY},
                    },
                },
            }
            for webhook in native["webhook_configs"]
        ],
    }
