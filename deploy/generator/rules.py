"""The alert and recording rules, for a Prometheus that has other jobs beside ours."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy.generator import text

# A matcher of the label `job` in PromQL, whatever it does. label_replace writes "job", which is none.
_JOB = re.compile(r'\bjob\s*(=~|!~|!=|=)\s*"([^"]*)"')
_OTHERS = re.compile(r"\b(prometheus|alertmanager)_[a-z]")
_DASHBOARDS = "{{ $externalLabels.heapwatch_dashboards }}"
_RUNBOOKS = "{{ or $externalLabels.heapwatch_runbooks `docs/runbooks` }}"


def rewritten(expression: str, jobs: Mapping[str, str]) -> str:
    """`expression` with each job by its name elsewhere.

    Raises:
        ValueError: it selects jobs in a way that cannot be rewritten: another job, or not by equality.

    """

    def rename(match: re.Match[str]) -> str:
        operator, job = match.groups()
        if operator != "=" or job not in jobs:
            raise ValueError(
                f"a rule selects {match[0]}; only {', '.join(jobs)} by equality can be rewritten"
            )
        return f'job="{jobs[job]}"'

    return _JOB.sub(rename, expression)


def groups(
    rules: Path,
    jobs: Mapping[str, str],
    labels: Mapping[str, str],
    dashboards: str,
    runbooks: str,
    interval: str,
) -> list[dict[str, Any]]:
    """The rule groups of every file in the folder `rules`, with `labels` added to every alert.

    `jobs`: names of the jobs there, and here. `interval`: of evaluation of a group without its own, which
    the windows of its rules need.

    Raises:
        ValueError: a rule selects jobs in a way that cannot be rewritten.

    """

    def rendered(rule: Mapping[str, Any]) -> dict[str, Any]:
        changed = {**rule, "expr": rewritten(rule["expr"], jobs)}
        if "alert" in rule:
            changed["labels"] = {**rule["labels"], **labels}
            changed["annotations"] = {
                name: text.replace(_DASHBOARDS, dashboards).replace(_RUNBOOKS, runbooks)
                for name, text in rule["annotations"].items()
            }
        return changed

    return [
        {
            "name": group["name"],
            "interval": group.get("interval", interval),
            "rules": [rendered(rule) for rule in kept],
        }
        for group in _read(rules)
        if (kept := [rule for rule in group["rules"] if not _OTHERS.search(rule["expr"])])
    ]


def _read(rules: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(rules.glob("*.yml")):
        yield from yaml.load(file.read_text(encoding="utf-8"), text.LOADER)["groups"]
