"""What the alert rules, the status and the panels make of the series that an example exposes now."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.leaks.judged import with_judge
from benchmarks.leaks.replay import ask
from benchmarks.leaks.scenario import Scenario
from heapwatch.collectors.readings import LEVEL_SERIES
from heapwatch.explain.findings import Explanation
from heapwatch.http.status import Status
from heapwatch.judge.component import GROWN, Component
from heapwatch.judge.limits import ALIASES
from tests.support.repository import REPOSITORY

RULES = REPOSITORY / "prometheus" / "rules"
SCRAPES = 81  # of 15 s: twenty minutes
NOTHING = Explanation("too early", 0.0, 0.0, 0.0)
GROWTH_SAMPLES = 10


def evaluate(
    text: str, expected: Mapping[str, Mapping[str, float]], changed: Mapping[str, list[float]] | None = None
) -> None:
    """Have promtool evaluate expressions over an exposition that stays the same for twenty minutes.

    Args:
        text: the exposition.
        expected: expression -> {labels of each sample, such as `{type="static"}`: value}.
        changed: series, such as `trainer_bodies{type="static"}` -> its values.

    Raises:
        AssertionError: with what promtool found instead.

    """
    series: dict[str, list[float | None]] = {
        f"{name}{{{_labels(labels)}}}": [value] * SCRAPES for name, labels, value in _samples(text)
    }
    series |= {"process_start_time_seconds{}": [-3600.0] * SCRAPES}  # promtool's clock begins at 0
    tests = [
        {
            "expr": expression,
            "eval_time": "18m",
            "exp_samples": [{"labels": labels, "value": value} for labels, value in samples.items()],
        }
        for expression, samples in expected.items()
    ]
    scenario = Scenario("example", series | dict(changed or {}))
    printed = ask(with_judge(scenario), sorted(RULES.glob("*.yml")), promql_expr_test=tests)
    assert "SUCCESS" in printed, printed


def alerts_at(text: str, component: Component, level: float, profile: str = "") -> list[dict[str, Any]]:
    """The alerts of the status about a component, were its level this and everything else as exposed.

    Args:
        text: the exposition.
        component: of what.
        level: in bytes or items.
        profile: whose limits apply, by default that of the trainer.

    """
    document = Status(lambda: NOTHING).document(_with_level(text, component, level, profile))
    return _about(document, component, "threshold")


def alerts_growing(
    text: str, component: Component, rate: float, per: str = "minute", profile: str = ""
) -> list[dict[str, Any]]:
    """The alerts of the status about a component that grows so much in a minute, or in a cycle of a minute.

    Other cycles do not end meanwhile. The profile is by default that of the trainer.
    """
    now = [0.0]
    status = Status(lambda: NOTHING, clock=lambda: now[0])
    for sample in range(GROWTH_SAMPLES):
        now[0] = 60.0 * sample
        families = _with_level(text, component, 1.0 + rate * sample, profile)
        others = [family for family in families if family.name != "trainer_progress"]
        ended = _only("trainer_progress_total", [({"unit": per}, float(sample))])
        document = status.document([ended, *others])
    return [alert for alert in _about(document, component, "growth") if alert["per"] == per]


def _about(document: Mapping[str, Any], component: Component, kind: str) -> list[dict[str, Any]]:
    return [
        alert
        for alert in document["alerts"]
        if (alert["resource"], alert["component"], alert["kind"]) == (*component, kind)
    ]


def _with_level(text: str, component: Component, level: float, profile: str = "") -> list[Metric]:
    """The exposition with another level of a component, and another profile where one is given."""
    series, label = LEVEL_SERIES[component.resource]
    name = component.name
    if component == GROWN:
        name = "trainer"
        level += next(value for found, _, value in _samples(text) if found == "trainer_memory_baseline_bytes")
    elif component.resource == "bodies" and name == "all":
        name = "dynamic"  # the only ones then
    families = [_only(series, [({label: name}, level)])]
    if profile:
        exported = next((alias for alias, of in ALIASES.items() if of == profile), profile)
        families.append(_only("trainer_limit_profile", [({"profile": exported}, 1.0)]))
    replaced = {family.name for family in families}
    return families + [
        family for family in text_string_to_metric_families(text) if family.name not in replaced
    ]


def _only(name: str, samples: Sequence[tuple[dict[str, str], float]]) -> Metric:
    family = Metric(name, "", "gauge")
    for labels, value in samples:
        family.add_sample(name, labels, value)
    return family


def _samples(text: str) -> list[tuple[str, dict[str, str], float]]:
    return [
        (sample.name, sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.value == sample.value and abs(sample.value) < float("inf")
    ]


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={json.dumps(value)}" for name, value in labels.items())
