"""The rules as a whole: they load, each is tested, and each alert says what an alert must say."""

import re
from itertools import chain
from pathlib import Path

import pytest
import yaml

from tests.support.programs import promtool

ROOT = Path(__file__).parents[2]
RULE_FILES = sorted((ROOT / "prometheus" / "rules").iterdir())
TEST_FILES = sorted((ROOT / "prometheus" / "tests").iterdir())
RUNBOOKS = ROOT / "docs" / "runbooks"

SEVERITIES = {"warning", "critical"}
KINDS = {"threshold", "growth", "leak", "forecast", "health"}
RESOURCES = {
    "memory", "gpu_memory", "bodies", "entities", "events", "buffer", "objects", "object_size",
    "trainer", "exporter", "stack",
}  # fmt: skip
ANNOTATIONS = {"summary", "description", "runbook_url", "dashboard_url"}
HEADINGS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]


SERIES = re.compile(r"job:[a-z_]+:[a-z0-9_]+")


def load(file):
    """libyaml's loader: every worker of the tests reads these long files."""
    return yaml.load(file.read_text(), yaml.CSafeLoader)


BY_FILE = {file: [rule for group in load(file)["groups"] for rule in group["rules"]] for file in RULE_FILES}
RULES = [rule for rules in BY_FILE.values() for rule in rules]
ALERTS = [rule for rule in RULES if "alert" in rule]


def alert_id(rule):
    labels = rule["labels"]
    severity = "templated" if "{{" in labels["severity"] else labels["severity"]
    return "-".join([rule["alert"], labels.get("level", severity)])


def test_folders_hold_nothing_else():
    assert [file.name for file in RULE_FILES if file.suffix != ".yml"] == []
    assert [file.name for file in TEST_FILES if not file.name.endswith("_test.yml")] == []


def test_rules_load_and_pass_the_lint():
    promtool("check", "rules", "--lint=all", "--lint-fatal", *RULE_FILES)


@pytest.mark.slow
@pytest.mark.timeout(600)  # half a minute of computing, on a machine that does other things as well
@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.stem)
def test_rule_tests_pass(file):
    promtool("test", "rules", file)


@pytest.mark.parametrize("file", TEST_FILES, ids=lambda file: file.stem)
def test_rule_tests_load_what_their_rules_read(file):
    """A test that leaves out rule files takes less time, and would be quiet where it misses one."""
    files = [path.resolve() for pattern in load(file)["rule_files"] for path in file.parent.glob(pattern)]
    loaded = [rule for path in files for rule in BY_FILE[path]]
    read = {name for rule in loaded for name in SERIES.findall(rule["expr"])}
    assert sorted(read - {rule.get("record") for rule in loaded}) == []


def expectations():
    """What the rule tests expect: (alert name, labels) that fire, and records whose samples are compared."""
    fired, records = [], set()
    for file in TEST_FILES:
        for test in load(file)["tests"]:
            for case in test.get("alert_rule_test", []):
                for alert in case.get("exp_alerts") or []:
                    fired.append((case["alertname"], alert["exp_labels"], alert.get("exp_annotations", {})))
            for case in test.get("promql_expr_test", []):
                samples = case.get("exp_samples") or []
                for sample in samples:
                    match = re.match(r'ALERTS\{.*alertname="(\w+)"', sample["labels"])
                    if match:
                        labels = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"]))
                        fired.append((match[1], labels, {}))
                if samples:
                    records.update(SERIES.findall(case["expr"]))
    return fired, records


FIRED, RECORDED = expectations()


@pytest.mark.parametrize("rule", ALERTS, ids=alert_id)
def test_each_alert_is_seen_firing_with_its_labels(rule):
    own = {name: value for name, value in rule["labels"].items() if "{{" not in str(value)}
    levels = [labels for name, labels, _ in FIRED if name == rule["alert"] and own.items() <= labels.items()]
    assert any(labels.get("level") == own.get("level") for labels in levels), f"no test sees {own} fire"


@pytest.mark.parametrize("name", sorted({rule["alert"] for rule in ALERTS}))
def test_each_alert_is_read_word_by_word(name):
    texts = [annotations for fired, _, annotations in FIRED if fired == name]
    assert any(annotations.keys() >= {"summary", "description"} for annotations in texts)


def test_each_record_has_a_figure_compared():
    """Directly, or through another rule that uses it and is itself tested."""
    by_name = {}
    for rule in RULES:
        by_name.setdefault(rule.get("record"), []).append(rule)
    used = {name: set() for name in by_name if name}
    for rule in RULES:
        for name in set(SERIES.findall(rule["expr"])) & used.keys():
            used[name].add(rule.get("record") or rule["alert"])
    tested = RECORDED | {name for name, _, _ in FIRED}
    growing = True
    while growing:
        before = len(tested)
        tested |= {name for name, users in used.items() if users & tested}
        growing = len(tested) > before
    assert sorted(used.keys() - tested) == []


@pytest.mark.parametrize("rule", ALERTS, ids=alert_id)
def test_each_alert_carries_the_labels_that_routes_need(rule):
    labels = rule["labels"]
    assert "{{" in labels["severity"] or labels["severity"] in SEVERITIES
    assert labels["kind"] in KINDS
    assert labels.get("resource", "memory") in RESOURCES
    assert labels.get("action", "cleanup") == "cleanup"
    for fired, seen, _ in FIRED:
        if fired == rule["alert"]:
            assert seen["resource"] in RESOURCES
            assert seen["component"]
            assert seen["severity"] in SEVERITIES


@pytest.mark.parametrize("rule", ALERTS, ids=alert_id)
def test_each_alert_says_what_and_what_to_do(rule):
    annotations = rule["annotations"]
    assert annotations.keys() >= ANNOTATIONS
    assert annotations["runbook_url"].endswith(f"}}}}/{rule['alert']}.md")
    assert annotations["dashboard_url"].startswith("{{ $externalLabels.heapwatch_dashboards }}/d/heapwatch-")
    assert "\n" not in annotations["summary"]


def test_texts_expand():
    texts = chain.from_iterable(annotations.values() for _, _, annotations in FIRED)
    assert not [text for text in texts if "error expanding" in text or "<no value>" in text]


def test_dashboard_links_lead_somewhere():
    urls = [annotations["dashboard_url"] for _, _, annotations in FIRED if annotations]
    uids = {re.search(r"/d/([a-z-]+)(\?|$)", url)[1] for url in urls}
    generated = {file.stem for file in (ROOT / "dashboards" / "generated").glob("*.json")}
    assert uids <= generated


def test_a_runbook_for_each_alert_and_an_alert_for_each_runbook():
    posted_by_the_receiver = {"TrainerCleanupEscalated"}
    alerts = {rule["alert"] for rule in ALERTS} | posted_by_the_receiver
    assert {file.stem for file in RUNBOOKS.glob("*.md")} == alerts


@pytest.mark.parametrize("file", sorted(RUNBOOKS.glob("*.md")), ids=lambda file: file.stem)
def test_runbooks_have_the_four_headings(file):
    text = file.read_text()
    assert text.startswith(f"# {file.stem}\n")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    sections = re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]
    assert all(len(section.split()) >= 8 for section in sections)


def test_what_prometheus_3_dropped_is_not_used():
    text = "\n".join(rule["expr"] for rule in RULES)
    assert not re.search(r"\bholt_winters\b", text)
