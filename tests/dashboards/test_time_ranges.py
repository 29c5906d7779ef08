"""No query loses what was short, or takes two processes at one address for one."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboards.documents import DOCUMENTS, expressions, interpolate, targets
from tests.dashboards.promql import selectors
from tests.support.programs import find

EVALUATION_SECONDS = 30
SUBQUERY = re.compile(r"\[[^\[\]]*:([^\[\]]*)\]")
ACROSS = re.compile(r"\b(?:deriv|delta|increase|idelta|avg_over_time|resets|changes)\(")
BY_LIFE = "group_left (trainer_name)"
SAME_PROCESS = "and on (job, instance) (job:trainer_process:start"
# Processes of the stack: of a counter that starts again, `increase` misses nothing.
OF_THE_STACK = ("alertmanager_", "prometheus_", "heapwatch_receiver_")


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


def closing(text: str, opened: int) -> int:
    """Where the parenthesis that opens there is closed."""
    depth = 0
    for place in range(opened, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise AssertionError(text)


def is_guarded(text: str, end: int) -> bool:
    """Whether an expression around what ends there is only of processes that did not start again."""
    depth = outermost = 0
    for place in range(end, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        outermost = min(outermost, depth)
        if depth == outermost and text.startswith(SAME_PROCESS, place):
            return True
    return False


def mixed(query: str) -> Iterator[str]:
    """The calls in which two processes at one address would be taken for one."""
    for match in ACROSS.finditer(query):
        end = closing(query, match.end() - 1)
        inside = query[match.end() : end]
        ours = [one for one in selectors(inside) if not one.metric.startswith(OF_THE_STACK)]
        if ours and BY_LIFE not in inside and not is_guarded(query, end + 1):
            yield query[match.start() : end + 1]


def test_no_slope_leads_from_one_process_to_the_next_at_its_address() -> None:
    assert [(where, call) for where, query in queries() for call in mixed(query)] == []


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("deriv(trainer_x[1h])", True),
        ("sum(60 * deriv(trainer_x[1h])) / 2", True),
        ("(60 * deriv(trainer_x[1h]) and on (job, instance) (job:trainer_process:start))", False),
        ("sum(deriv(trainer_x[1h]) or trainer_y and on (job, instance) (job:trainer_process:start))", False),
        ("sum(deriv(trainer_x[1h])) or (a and on (job, instance) (job:trainer_process:start))", True),
        ("increase((x * on (job) group_left (trainer_name) y)[1h:30s])", False),
    ],
)
def test_the_search_for_such_slopes_finds_them(query: str, found: bool) -> None:
    assert bool(list(mixed(query))) == found


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
    file = tmp_path / "short.yml"
    case = {"interval": "30s", "input_series": series, "promql_expr_test": tests}
    file.write_text(json.dumps({"tests": [case]}))
    command = [find("promtool"), "test", "rules", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
