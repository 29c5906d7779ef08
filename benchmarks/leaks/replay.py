"""What fires when in a scenario: by Prometheus' own rule engine (`promtool test rules`), and in Python.

The second is the definition of a leak as `heapwatch.analysis` states it; it needs no Prometheus.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml
from heapwatch.judge.judge import judge
from heapwatch.judge.observed import Series, observed

from benchmarks.leaks.scenario import LABEL, Scenario
from heapwatch.judge.component import MEMORY, Component
from heapwatch.judge.rates import Samples, Values, steps

Alert = dict[str, str]
Firing = dict[int, list[Alert]]  # minute -> alerts that fire then

SECONDS = 3600.0  # that promtool may take on a busy machine
_TIME = re.compile(r"time: (?:(\d+)h)?(?:(\d+)m)?(?:\d+s)?,")
_ALERT = re.compile(r"\{[^{}]*alertname=[^{}]*\}")


def replay(scenario: Scenario, rules: list[Path]) -> Firing:
    """Look once a minute. Raises FileNotFoundError without promtool, ValueError when it cannot replay."""
    minutes = scenario.scrapes * scenario.scrape_seconds // 60
    expression = 'ALERTS{alertstate="firing", component!="watchdog"}'
    # Nothing is expected, so that promtool prints all there is.
    printed = ask(
        scenario,
        rules,
        promql_expr_test=[{"expr": expression, "eval_time": f"{minute}m"} for minute in range(minutes)],
    )
    firing: Firing = {}
    minute = 0
    for line in printed.splitlines():
        if when := _TIME.search(line):
            minute = 60 * int(when[1] or 0) + int(when[2] or 0)
        for text in _ALERT.findall(line):
            firing.setdefault(minute, []).append(dict(LABEL.findall(text)))
    if not firing and "SUCCESS" not in printed:
        raise ValueError(f"promtool could not replay {scenario.id}: {printed.strip()[:500]}")
    return firing


def merged(one: Firing, other: Firing) -> Firing:
    return {minute: [*one.get(minute, ()), *other.get(minute, ())] for minute in {*one, *other}}


def ask(scenario: Scenario, rules: list[Path], **tests: list[dict[str, Any]]) -> str:
    """What promtool prints of the scenario under these rules. Raises FileNotFoundError without promtool.

    Args:
        scenario: what was scraped.
        rules: rule files.
        tests: promtool's lists of tests, `promql_expr_test` or `alert_rule_test`.

    """
    promtool = shutil.which("promtool")
    if promtool is None:
        raise FileNotFoundError("promtool is not on PATH")
    document = {
        "rule_files": [str(path.resolve()) for path in rules],
        "evaluation_interval": "30s",
        "group_eval_order": _groups(rules),
        "tests": [
            {"interval": f"{scenario.scrape_seconds}s", "input_series": _input_series(scenario), **tests}
        ],
    }
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        json.dump(document, file)  # JSON is YAML
        file.flush()
        command = [promtool, "test", "rules", file.name]
        environment = {**os.environ, "GOGC": "400"}  # a seventh of the time is garbage collection
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    return done.stdout + done.stderr


def _groups(rules: list[Path]) -> list[str]:
    """Names of the groups, those that only record first: without a list promtool shuffles them."""
    groups = [group for path in rules for group in load_groups(path)]
    return [
        group["name"] for group in sorted(groups, key=lambda group: any("alert" in r for r in group["rules"]))
    ]


def load_groups(path: Path) -> list[dict[str, Any]]:
    """The groups of a rule file. libyaml's loader takes a tenth of the time."""
    groups: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader)["groups"]
    return groups


def _input_series(scenario: Scenario) -> list[dict[str, str]]:
    """The scenario's series as a Prometheus sees them: with job and instance, and `up` beside them."""
    series: dict[str, str] = {}
    for name, own, values in scenario.parsed():
        labels = {"job": "trainer", "instance": scenario.id, **own}
        joined = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
        series[f"{name}{{{joined}}}"] = " ".join("_" if value is None else repr(value) for value in values)
        up = f'up{{job="trainer",instance="{labels["instance"]}"}}'
        series.setdefault(up, " ".join("0" if value is None else "1" for value in values))
    return [{"series": name, "values": values} for name, values in series.items()]


def firing_in_python(scenario: Scenario) -> Firing:
    evaluations = scenario.scrapes * scenario.scrape_seconds * steps(1) // 60
    firing: Firing = {}
    for instance, series in series_of(scenario).items():
        verdicts = judge(observed(series, 0.0, evaluations))
        alerts: list[tuple[str, Component, Values]] = [
            *(("leak", component, values) for component, values in verdicts.leaks.items()),
            *(("leak", component, values) for component, values in verdicts.past_bound.items()),
            ("growth", MEMORY, verdicts.retained),
        ]
        for kind, component, values in alerts:
            alert = {"alertname": "Python", "kind": kind, "instance": instance or scenario.id}
            alert |= {"resource": component.resource, "component": component.name}
            for minute, value in enumerate(values[:: steps(1)]):
                if value is not None:
                    firing.setdefault(minute, []).append(alert)
    return firing


def series_of(scenario: Scenario) -> dict[str, dict[Series, Samples]]:
    """The samples of each trainer, by instance; empty for the only one."""
    trainers: dict[str, dict[Series, Samples]] = {}
    for name, labels, values in scenario.parsed():
        instance = labels.pop("instance", "")
        series = Series(name, tuple(sorted(labels.items())))
        trainers.setdefault(instance, {})[series] = [
            (number * scenario.scrape_seconds, value)
            for number, value in enumerate(values)
            if value is not None and not math.isnan(value)
        ]
    return trainers
