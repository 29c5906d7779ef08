"""Every query of every panel: it parses, it names series that somebody produces, it returns data."""

import json
from pathlib import Path

import pytest

from tests.dashboards.asking import run
from tests.dashboards.documents import Target, expressions, interpolate, targets
from tests.support.programs import promtool

pytestmark = pytest.mark.slow


def is_limit(target: Target) -> bool:
    """Whether this is a limit, which is drawn only where the data come near it."""
    return " limit" in target.target.get("legendFormat", "")


@pytest.mark.parametrize("target", [target for target in targets() if not is_limit(target)], ids=str)
def test_the_query_returns_data(target: Target, prometheus_url: str) -> None:
    series = run(prometheus_url, target)
    assert series, f"{target}: no data for {target.target['expr']}"


LIMITS = [target for target in targets() if is_limit(target)]


@pytest.mark.parametrize("target", LIMITS, ids=str)
def test_a_limit_is_known_whether_it_is_near_or_not(target: Target, prometheus_url: str) -> None:
    limit, is_conditional, _ = target.target["expr"].rpartition(" and max_over_time(")
    assert is_conditional
    if limit.count("(") > limit.count(")"):  # the whole was multiplied by the trainer's name
        limit = limit.removeprefix("(")
    known = Target(target.dashboard, target.panel, {**target.target, "expr": limit})
    assert run(prometheus_url, known)


def test_every_expression_parses(tmp_path: Path) -> None:
    rules = [
        {"record": f"query:number_{number}", "expr": interpolate(expression)}
        for number, (_, expression) in enumerate(expressions())
    ]
    file = tmp_path / "queries.yml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", file)


TABLES = [
    target
    for target in targets()
    if target.panel["type"] == "table" and target.panel["transformations"][-1]["id"] == "organize"
]


@pytest.mark.parametrize("target", TABLES, ids=str)
def test_a_table_has_a_column_for_every_label(target: Target, prometheus_url: str) -> None:
    placed = target.panel["transformations"][-1]["options"]["indexByName"]
    labels = {label for series in run(prometheus_url, target) for label in series["metric"]}
    assert labels - placed.keys() == set()
