"""No dashboard makes a mistake that Grafana's front end would show, and each rule finds the one it is for."""

import copy
from collections.abc import Callable

import pytest

from tests.dashboards import grafana_rules as rules
from tests.dashboards.documents import DOCUMENTS, Json, panels

FLEET, TRAINER = "heapwatch-fleet", "heapwatch-trainer"


def titled(document: Json, title: str) -> Json:
    (found,) = [panel for panel in panels(document) if panel["title"] == title]
    return found


def defaults(document: Json, title: str) -> Json:
    fields: Json = titled(document, title)["fieldConfig"]["defaults"]
    return fields


def no_overrides_of(document: Json, title: str, name: str) -> None:
    configuration = titled(document, title)["fieldConfig"]
    configuration["overrides"][:] = [
        override
        for override in configuration["overrides"]
        if name not in [item["id"] for item in override["properties"]]
    ]


def every_override(document: Json, title: str, name: str, value: str) -> None:
    for override in titled(document, title)["fieldConfig"]["overrides"]:
        for item in override["properties"]:
            if item["id"] == name:
                item["value"] = value


def alert_annotation(document: Json) -> Json:
    annotation: Json = document["annotations"]["list"][0]
    return annotation


def first_query(document: Json, title: str) -> Json:
    target: Json = titled(document, title)["targets"][0]
    return target


# A rule, the dashboard, and the mistake in it that the rule is for.
MISTAKES: dict[str, tuple[rules.Rule, str, Callable[[Json], object]]] = {
    "a missing value in green": (
        rules.missing_values_have_no_colour_of_a_verdict,
        FLEET,
        lambda page: defaults(page, "Leaking")["thresholds"]["steps"][0].update(color="#009E73"),
    ),
    "an empty text on an axis": (
        rules.empty_texts_stay_off_axes,
        TRAINER,
        lambda page: no_overrides_of(page, "Memory freed by cleanups", "noValue"),
    ),
    "gaps drawn as zero": (
        rules.missing_data_stay_missing,
        TRAINER,
        lambda page: every_override(page, "Memory explained", "noValue", ""),
    ),
    "an alert as a region": (
        rules.annotations_are_moments,
        TRAINER,
        lambda page: alert_annotation(page).update(expr='ALERTS{alertstate="firing", kind="leak"}'),
    ),
    "every alert": (
        rules.annotations_are_few,
        TRAINER,
        lambda page: alert_annotation(page).update(expr='ALERTS{alertstate="firing"}'),
    ),
    "alerts over every panel": (
        rules.annotations_are_filtered,
        TRAINER,
        lambda page: alert_annotation(page).pop("filter"),
    ),
    "alerts over a table": (
        rules.annotations_are_filtered,
        TRAINER,
        lambda page: alert_annotation(page)["filter"]["ids"].append(
            titled(page, "What grows, where, and what to do")["id"]
        ),
    ),
    "a limit that is far away": (
        rules.far_limits_do_not_set_the_scale,
        FLEET,
        lambda page: titled(page, "Memory growth per minute by trainer")["targets"][1].update(expr="5e9"),
    ),
    "the last value of a trainer that ended": (
        rules.single_values_are_of_now,
        FLEET,
        lambda page: first_query(page, "Trainers").update(instant=False),
    ),
    "a forecast of its own": (
        rules.forecasts_have_one_source,
        TRAINER,
        lambda page: first_query(page, "Time left").update(
            expr="min(job:trainer_memory:time_to_limit_seconds)"
        ),
    ),
    "a forecast without words": (
        rules.forecasts_have_one_source,
        TRAINER,
        lambda page: defaults(page, "Time left").update(mappings=[]),
    ),
    "an answer below the fold": (
        rules.the_answer_is_seen_at_once,
        TRAINER,
        lambda page: [row["gridPos"].update(y=21) for row in page["panels"] if row["type"] == "row"],
    ),
    "a page without a question": (
        rules.the_answer_is_seen_at_once,
        TRAINER,
        lambda page: page.update(description="Memory of a trainer."),
    ),
}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_dashboard_makes_no_mistake(rule: rules.Rule, document: Json) -> None:
    assert list(rule(document)) == []


@pytest.mark.parametrize(("rule", "uid", "make"), MISTAKES.values(), ids=MISTAKES)
def test_the_mistake_is_found(rule: rules.Rule, uid: str, make: Callable[[Json], object]) -> None:
    page = copy.deepcopy(DOCUMENTS[uid])
    make(page)
    assert len(list(rule(page))) == 1


def test_every_rule_has_a_mistake() -> None:
    assert {rule for rule, _, _ in MISTAKES.values()} == set(rules.RULES)
