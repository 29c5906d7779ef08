"""Every series that a panel, an annotation or a variable names has somebody who produces it."""

import ast
import re
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

import heapwatch_receiver
from heapwatch_dashboards.__main__ import ROOT
from tests.dashboards.documents import DOCUMENTS, expressions
from tests.dashboards.promql import selectors

# What Prometheus adds by itself to every target and for every alert:
# https://prometheus.io/docs/concepts/jobs_instances/#automatically-generated-labels-and-time-series
BY_PROMETHEUS = {"up", "scrape_duration_seconds", "scrape_samples_scraped", "ALERTS", "ALERTS_FOR_STATE"}
VARIABLE = re.compile(r"label_values\(([a-zA-Z_:]+)")


def named() -> dict[str, str]:
    """Series to a place where it is named."""
    places = {selector.metric: where for where, text in expressions() for selector in selectors(text)}
    for uid, document in DOCUMENTS.items():
        for entry in document["templating"]["list"]:
            if entry["type"] == "query":
                places |= dict.fromkeys(VARIABLE.findall(entry["definition"]), f"{uid} / ${entry['name']}")
    return places


def with_prefix(prefix: str) -> dict[str, str]:
    found = {metric: where for metric, where in named().items() if metric.startswith(prefix)}
    assert found, f"nothing is named {prefix}..."
    return found


def missing(named: dict[str, str], produced: set[str]) -> dict[str, str]:
    """What is named and not produced; a histogram or summary stands for its parts."""
    parts = {name + part for name in produced for part in ("", "_sum", "_count", "_bucket")}
    return {metric: where for metric, where in named.items() if metric not in parts}


@pytest.mark.parametrize("prefix", ["trainer_", "machine_"])
def test_the_series_of_trainers_and_machines_are_in_the_reference(prefix: str) -> None:
    reference = (ROOT / "docs" / "metrics.md").read_text()
    assert missing(with_prefix(prefix), set(re.findall(rf"`({prefix}\w+)`", reference))) == {}


def test_recorded_series_have_a_rule() -> None:
    files = (ROOT / "prometheus" / "rules").glob("*.yml")
    groups = [group for file in files for group in yaml.load(file.read_text(), yaml.CSafeLoader)["groups"]]
    recorded = {rule["record"] for group in groups for rule in group["rules"] if "record" in rule}
    assert missing(with_prefix("job:"), recorded) == {}


def test_the_receivers_series_are_in_its_source() -> None:
    folder = Path(heapwatch_receiver.__file__).parent
    names = {
        f"heapwatch_receiver_{node.value}"
        for node in ast.walk(ast.parse((folder / "metrics.py").read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert missing(with_prefix("heapwatch_receiver_"), names | {f"{name}_total" for name in names}) == {}


def test_process_and_python_series_come_from_the_client_library() -> None:
    produced = {sample.name for family in REGISTRY.collect() for sample in family.samples}
    assert missing(with_prefix("process_"), produced) == {}


def test_there_is_no_other_producer() -> None:
    ours = ("trainer_", "machine_", "job:", "heapwatch_receiver_")
    known = (*ours, "process_", "prometheus_", "alertmanager_")
    others = {metric for metric in named() if not metric.startswith(known)}
    assert others <= BY_PROMETHEUS
