"""Objects of the Prometheus operator: what is scraped, which rules hold, where alerts go."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.generator import rules
from deploy.generator.configuration import RECEIVER, RECEIVER_PORT, TRAINERS, Configuration

Manifest = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
WEBHOOK_TOKEN_KEY = "webhook-token"
TOKEN_KEY = "token"
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
_LIMITS = {
    "sample_limit": "sampleLimit",
    "label_limit": "labelLimit",
    "label_name_length_limit": "labelNameLengthLimit",
    "label_value_length_limit": "labelValueLengthLimit",
    "body_size_limit": "bodySizeLimit",
}
# Rules join series of one trainer by job and instance; `ignoring` and `without` count on no further labels.
_NO_OTHER_LABELS = [{"action": "labeldrop", "regex": "namespace|pod|container|endpoint|node"}]


def metadata(name: str, configuration: Configuration, **labels: str) -> Manifest:
    """Name, namespace and labels of an object; those of the configuration are what operators select by."""
    common = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "heapwatch"}
    return {"name": name, "namespace": configuration.namespace, "labels": common | labels}


def selected(name: str, configuration: Configuration) -> Manifest:
    """Metadata of an object that the operator selects by its labels."""
    return metadata(name, configuration, **configuration.labels)


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
        "metadata": selected("heapwatch", configuration),
        "spec": {"groups": rule_groups(configuration)},
    }


def pod_monitor(configuration: Configuration) -> Manifest:
    """Scrapes every pod with the trainers' labels, in any namespace, at the port of that name."""
    prometheus = _prometheus()
    (trainer,) = (job for job in prometheus["scrape_configs"] if job["job_name"] == "trainer")
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": selected(TRAINERS, configuration),
        "spec": {
            "namespaceSelector": {"any": True},
            "selector": {"matchLabels": dict(configuration.trainer_labels)},
            "podMetricsEndpoints": [_endpoint(configuration.trainer_port_name, prometheus)],
            **{ours: trainer[theirs] for theirs, ours in _LIMITS.items()},
        },
    }


def service_monitor(configuration: Configuration) -> Manifest:
    """Scrapes the receiver."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": selected(RECEIVER, configuration),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": RECEIVER}},
            "endpoints": [_endpoint("http", _prometheus())],
        },
    }


def alertmanager_config(configuration: Configuration) -> Manifest:
    """The native stack's routes; alerts then go on to what the cluster's own configuration says."""
    native = yaml.safe_load((ROOT / "alerting" / "alertmanager.yml").read_text(encoding="utf-8"))
    return {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": selected("heapwatch", configuration),
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


def _endpoint(port: str, prometheus: Mapping[str, Any]) -> Manifest:
    return {
        "port": port,
        "path": "/metrics",
        "interval": prometheus["global"]["scrape_interval"],
        "scrapeTimeout": prometheus["global"]["scrape_timeout"],
        "relabelings": _NO_OTHER_LABELS,
    }


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
    for text in texts:
        match = _MATCHER.fullmatch(text)
        if match is None:
            raise ValueError(f"alertmanager.yml: {text} is no matcher")
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
