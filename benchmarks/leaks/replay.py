"""What fires when in a scenario, by Prometheus' own rule engine (`promtool test rules`)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import yaml

from benchmarks.leaks.judge import Firing
from benchmarks.leaks.scenario import LABEL, Scenario

SECONDS = 3600.0  # that promtool may take on a busy machine
_TIME = re.compile(r"time: (?:(\d+)h)?(?:(\d+)m)?(?:\d+s)?,")
_ALERT = re.compile(r"\{[^{}]*alertname=[^{}]*\}")


def replay(scenario: Scenario, rules: list[Path]) -> Firing:
    """Look once a minute at what fires by the rules.

    Raises:
        FileNotFoundError: there is no promtool.
        ValueError: it cannot replay the scenario.

    """
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
