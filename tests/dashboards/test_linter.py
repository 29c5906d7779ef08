"""The rules of Grafana's dashboard-linter, by their names, on the generated dashboards.

The rules: https://github.com/grafana/dashboard-linter/blob/main/docs/index.md. The two for LogQL have
nothing to look at here; those about data sources, units, targets and editing are in `schema.json`. An
exclusion names its rule and its metric, and gives its reason.
"""

import re
from collections.abc import Callable, Iterator

import pytest

from tests.dashboards.documents import DOCUMENTS, Json, Target, interpolate, panels, targets
from tests.dashboards.promql import selectors

# The linter wants the variable called Instance. People know a trainer by its name.
LABELS = {(False, "instance"): "Trainer"}

RECEIVER = (
    "one receiver serves all trainers under its own job: choosing a trainer must not hide what was decided"
)
STACK = "one stack serves all trainers: choosing a trainer must not hide that its alerts are lost"
MACHINE = "one figure a machine, of all trainers there together"
WHOLE_EVENTS = (
    "rare events, counted by the difference over one step: increase() would show 1.07 cleanups, twice"
)

# (rule, metric by regular expression): the reason.
EXCLUSIONS = {
    ("target-job-rule", "job:machine_memory:.*"): MACHINE,
    ("target-instance-rule", "job:machine_memory:.*"): MACHINE,
    ("target-job-rule", "job:stack:.*"): STACK,
    ("target-instance-rule", "job:stack:.*"): STACK,
    ("target-job-rule", "heapwatch_receiver_.*"): RECEIVER,
    ("target-instance-rule", "heapwatch_receiver_.*"): RECEIVER,
    ("target-counter-agg-rule", "trainer_cleanup_.*|heapwatch_receiver_.*"): WHOLE_EVENTS,
    ("target-counter-agg-rule", "trainer_exporter_collect_errors_total"): WHOLE_EVENTS,
    ("target-counter-agg-rule", "prometheus_rule_.*_total"): WHOLE_EVENTS,
    ("target-counter-agg-rule", "trainer_gpu_allocation_retries_total"): WHOLE_EVENTS,
    ("target-counter-agg-rule", "trainer_progress_total"): (
        "the number of the cycle itself is shown, as the row's name in the trend table"
    ),
}


def excluded(rule: str, metric: str) -> bool:
    return any(name == rule and re.fullmatch(pattern, metric) for name, pattern in EXCLUSIONS)


def variable(document: Json, name: str) -> Json:
    (found,) = [entry for entry in document["templating"]["list"] if entry["name"] == name]
    return dict(found)


def template_datasource_rule(document: Json) -> Iterator[str]:
    chosen = [entry for entry in document["templating"]["list"] if entry["type"] == "datasource"]
    if [(entry["name"], entry["label"], entry["query"]) for entry in chosen] != [
        ("datasource", "Data source", "prometheus")
    ]:
        yield "one data source variable, called datasource, labelled Data source"


def _template(document: Json, name: str) -> Iterator[str]:
    entry = variable(document, name)
    wanted = {
        "type": "query",
        "label": LABELS.get((document["uid"] == "heapwatch-stack", name), name.title()),
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
    }
    yield from (f"{name}: {key} is {entry[key]}" for key in wanted if entry[key] != wanted[key])


def template_job_rule(document: Json) -> Iterator[str]:
    yield from _template(document, "job")


def template_instance_rule(document: Json) -> Iterator[str]:
    yield from _template(document, "instance")


def template_label_promql_rule(document: Json) -> Iterator[str]:
    for name in ("job", "instance"):
        query = variable(document, name)["query"]["query"]
        if re.fullmatch(r"query_result\(.+\)", query):
            continue
        if not re.fullmatch(r"label_values\(([\w:]+)(\{job=~\"\$job\"\})?, (job|instance)\)", query):
            yield f"{name}: {query}"


def template_on_time_change_reload_rule(document: Json) -> Iterator[str]:
    yield from (name for name in ("job", "instance") if variable(document, name)["refresh"] != 2)


def panel_title_description_rule(panel: Json) -> Iterator[str]:
    if not panel["title"] or len(panel["description"].split()) < 4:
        yield "no title, or no description worth reading"


def target_promql_rule(target: Target) -> Iterator[str]:
    expression = interpolate(target.target["expr"])
    if re.search(r"\$\D", expression) or not selectors(expression):
        yield expression


def target_rate_interval_rule(target: Target) -> Iterator[str]:
    for selector in selectors(target.target["expr"]):
        if selector.function in ("rate", "irate") and selector.range != "$__rate_interval":
            yield f"{selector.metric}[{selector.range}]"


def _matcher(target: Target, rule: str, matcher: str) -> Iterator[str]:
    for selector in selectors(target.target["expr"]):
        if matcher not in selector.matchers and not excluded(rule, selector.metric):
            yield f"{selector.metric}{selector.matchers}"


def target_job_rule(target: Target) -> Iterator[str]:
    yield from _matcher(target, "target-job-rule", 'job=~"$job"')


def target_instance_rule(target: Target) -> Iterator[str]:
    yield from _matcher(target, "target-instance-rule", 'instance=~"$instance"')


def target_counter_agg_rule(target: Target) -> Iterator[str]:
    for selector in selectors(target.target["expr"]):
        counter = selector.metric.endswith("_total")
        counted = selector.function in ("rate", "irate", "increase")
        if counter and not counted and not excluded("target-counter-agg-rule", selector.metric):
            yield f"{selector.function}({selector.metric})"


DASHBOARD_RULES = [
    template_datasource_rule,
    template_job_rule,
    template_instance_rule,
    template_label_promql_rule,
    template_on_time_change_reload_rule,
]
TARGET_RULES = [
    target_promql_rule,
    target_rate_interval_rule,
    target_job_rule,
    target_instance_rule,
    target_counter_agg_rule,
]


def name(rule: Callable[..., Iterator[str]]) -> str:
    return rule.__name__.replace("_", "-")


@pytest.mark.parametrize("rule", DASHBOARD_RULES, ids=name)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_dashboard(rule: Callable[[Json], Iterator[str]], document: Json) -> None:
    assert list(rule(document)) == []


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_panels(document: Json) -> None:
    found = {panel["title"]: list(panel_title_description_rule(panel)) for panel in panels(document)}
    assert {title: problems for title, problems in found.items() if problems} == {}


@pytest.mark.parametrize("rule", TARGET_RULES, ids=name)
def test_targets(rule: Callable[[Target], Iterator[str]]) -> None:
    found = {str(target): list(rule(target)) for target in targets()}
    assert {where: problems for where, problems in found.items() if problems} == {}


@pytest.mark.parametrize(("rule", "pattern"), EXCLUSIONS, ids=str)
def test_every_exclusion_is_still_needed(rule: str, pattern: str) -> None:
    wanted = {"target-job-rule": "job=~", "target-instance-rule": "instance=~"}
    for target in targets():
        for selector in selectors(target.target["expr"]):
            if re.fullmatch(pattern, selector.metric):
                if rule in wanted and wanted[rule] not in selector.matchers:
                    return
                if rule == "target-counter-agg-rule" and selector.function not in (
                    "rate",
                    "irate",
                    "increase",
                ):
                    return
    pytest.fail(f"nothing needs the exclusion of {pattern} from {rule} any more")
