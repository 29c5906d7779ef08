"""The rules for another place: the same rules, by other names."""

from pathlib import Path

import pytest
import yaml

from deploy.generator.rules import groups, rewritten
from tests.support.programs import promtool, promtool_tests
from tests.support.repository import REPOSITORY

RULES = REPOSITORY / "prometheus" / "rules"
JOBS = {"trainer": "ml/heapwatch-trainers", "stack": "heapwatch-receiver"}
NATIVE = [
    group
    for file in sorted(RULES.glob("*.yml"))
    for group in yaml.load(file.read_text(), yaml.CSafeLoader)["groups"]
]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('up{job="trainer"} == 0', 'up{job="ml/heapwatch-trainers"} == 0'),
        ('up{a="b", job = "stack"}', 'up{a="b", job="heapwatch-receiver"}'),
        ('label_replace(x, "job", "$1", "j", "(.*)")', 'label_replace(x, "job", "$1", "j", "(.*)")'),
        ("sum by (job) (job:trainer_resource:level)", "sum by (job) (job:trainer_resource:level)"),
        ('x{trainer_job="trainer"}', 'x{trainer_job="trainer"}'),
    ],
)  # fmt: skip
def test_a_job_has_its_name_elsewhere(expression: str, expected: str) -> None:
    assert rewritten(expression, JOBS) == expected


@pytest.mark.parametrize("matcher", ['job!="trainer"', 'job=~"train.*"', 'job="node"'])
def test_a_selector_that_cannot_be_rewritten_is_refused(matcher: str) -> None:
    with pytest.raises(ValueError, match="selects job"):
        rewritten(f"up{{{matcher}}}", JOBS)


def test_every_rule_but_those_about_prometheus_itself_is_there() -> None:
    rendered = groups(RULES, JOBS, {"namespace": "ml"}, "https://g", "https://r", "30s")
    assert [group["name"] for group in rendered] == [group["name"] for group in NATIVE]
    intervals = {group["name"]: group["interval"] for group in rendered}
    assert intervals["levels"] == "30s"
    assert intervals["growth_alerts"] == "1m"  # its own
    left = {_name(rule) for group in NATIVE for rule in group["rules"]}
    left -= {_name(rule) for group in rendered for rule in group["rules"]}
    assert left == {
        "HeapwatchRulesFailing",
        "HeapwatchAlertsNotSent",
        "HeapwatchNotificationsFailing",
        "HeapwatchConfigurationRejected",
    }


def test_alerts_name_the_namespace_and_their_links() -> None:
    rendered = groups(RULES, JOBS, {"namespace": "ml"}, "https://g", "https://r", "30s")
    alerts = [rule for group in rendered for rule in group["rules"] if "alert" in rule]
    assert alerts
    for alert in alerts:
        assert alert["labels"]["namespace"] == "ml"
        assert alert["annotations"]["runbook_url"] == f"https://r/{alert['alert']}.md"
        assert alert["annotations"]["dashboard_url"].startswith("https://g/d/heapwatch-")
        assert "externalLabels" not in str(alert["annotations"])


def test_rules_by_other_names_load_and_hold_for_these_jobs_alone(tmp_path: Path) -> None:
    rendered = groups(RULES, JOBS, {"namespace": "ml"}, "https://g", "https://r", "30s")
    health = [group for group in rendered if group["name"] in ("lost", "health_stack")]
    jobs = [*JOBS, *JOBS.values()]
    inputs = [{"series": f'up{{job="{job}", instance="i", service="s"}}', "values": "0x80"} for job in jobs]
    inputs += [
        {"series": f'scrape_duration_seconds{{job="{job}", instance="i"}}', "values": "0.1x80"}
        for job in jobs
    ]
    firing = 'alertstate="firing"'
    cases = [
        {
            "expr": f'count by (alertname, job, namespace) (ALERTS{{{firing}, alertname="{alert}"}})',
            "eval_time": "15m",
            "exp_samples": [{"labels": f'{{alertname="{alert}", job="{job}", namespace="ml"}}', "value": 1}],
        }
        for alert, job in (("TrainerDown", JOBS["trainer"]), ("HeapwatchServiceDown", JOBS["stack"]))
    ]
    test = {"interval": "15s", "input_series": inputs, "promql_expr_test": cases}
    promtool_tests(tmp_path, test, rules=health, evaluation_interval="30s")
    (tmp_path / "rules.yml").write_text(yaml.safe_dump({"groups": rendered}))
    promtool("check", "rules", tmp_path / "rules.yml")


def _name(rule: dict[str, str]) -> str:
    return rule.get("alert") or rule["record"]
