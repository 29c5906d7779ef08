"""No query loses what was short."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.documents import DOCUMENTS, expressions, interpolate, targets
from tests.support.programs import promtool_tests

EVALUATION_SECONDS = 30
SUBQUERY = re.compile(r"\[[^\[\]]*:([^\[\]]*)\]")


def queries() -> Iterator[tuple[str, str]]:
    """All expressions, those of variables too."""
    yield from expressions()
    for uid, document in DOCUMENTS.items():
        for variable in document["templating"]["list"]:
            yield f"{uid} / ${variable['name']}", variable.get("definition", "")


def test_no_subquery_is_coarser_than_the_evaluation_of_rules() -> None:
    found = {step for _, query in queries() for step in SUBQUERY.findall(query)}
    assert found
    assert {step for step in found if not 0 < int(step.removesuffix("s")) <= EVALUATION_SECONDS} == set()


# Samples of an alert of one evaluation, of three, and of one that fires still.
SAMPLES = {"one": "_x3 1 stale", "three": "_x4 1 1 1 stale", "now": "_x10 1x9"}
LASTED = {"one": 30, "three": 90, "now": 330}
LEAK = {"alertname": "TrainerLeak", "severity": "critical", "kind": "leak", "resource": "memory"}


def written(**labels: str) -> str:
    """Labels as PromQL writes them."""
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"


@pytest.mark.slow
@pytest.mark.parametrize("later", ["", "_ "], ids=["at a minute", "between two"])
def test_an_alert_that_fired_for_one_evaluation_is_counted_and_marked_once(
    tmp_path: Path, later: str
) -> None:
    series = []
    for name, samples in SAMPLES.items():
        address = {"job": "trainer", "instance": name}
        alert = written(alertstate="firing", component="trainer", **LEAK, **address)
        series.append({"series": f"ALERTS{alert}", "values": later + samples})
        series.append(
            {"series": f"job:trainer:name{written(trainer_name=name, **address)}", "values": "1x40"}
        )
    of = {"job": "trainer", "component": "trainer", **LEAK}
    fired = [
        {"labels": written(**of, instance=name, trainer_name=name), "value": seconds}
        for name, seconds in LASTED.items()
    ]
    marks = [{"labels": written(job="trainer", instance=name), "value": 1} for name in SAMPLES]
    (counted,) = (one.target["expr"] for one in targets() if "30 * count_over_time" in one.target["expr"])
    annotations = DOCUMENTS["heapwatch-alerts"]["annotations"]["list"]
    (marked,) = (one["expr"] for one in annotations if "alerts" in one["name"])
    shift = 30 if later else 0
    asked = [(counted, 600, fired), (marked, 300, marks), (marked, 600, [])]
    tests = [
        {
            "expr": interpolate(query, step=300, range_seconds=600),
            "eval_time": f"{at + shift}s",
            "exp_samples": expected,
        }
        for query, at, expected in asked
    ]
    promtool_tests(tmp_path, {"interval": "30s", "input_series": series, "promql_expr_test": tests})
