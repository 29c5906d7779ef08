"""What `heapwatch rules` and `heapwatch dashboards` hand out, as promtool and Grafana's form see it."""

import json
import subprocess

import pytest
import yaml

from heapwatch import data


@pytest.fixture
def printed(run):
    def printed(*arguments):
        code, output, errors = run(*arguments)
        assert code == 0, errors
        return output

    return printed


def check(*files):
    done = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def shipped():
    return list(data.path("prometheus", "rules").glob("*.yml"))


def test_the_rules_are_one_file_that_promtool_accepts(tmp_path, printed):
    file = tmp_path / "rules.yml"
    file.write_text(printed("rules"))
    check(file)
    groups = {group["name"] for group in yaml.safe_load(file.read_text())["groups"]}
    documents = [yaml.safe_load(path.read_text()) for path in shipped()]
    assert groups == {group["name"] for document in documents for group in document["groups"]}


def test_job_and_addresses_are_the_users(printed):
    dashboards = ("--dashboards-url", "https://grafana.example.com/")
    text = printed("rules", "--job", "rl", *dashboards, "--runbooks-url", "https://wiki.example.com/rl")
    assert 'job="trainer"' not in text
    assert 'up{job="rl"}' in text
    assert "https://grafana.example.com/d/heapwatch-trainer?" in text
    assert "https://wiki.example.com/rl/TrainerLeak.md" in text
    assert "externalLabels" not in text


def test_selectors_are_the_users_and_still_accepted(tmp_path, printed):
    printed("rules", "--selector", 'job=~"train.+",team="rl"', "--output", tmp_path)
    files = sorted(tmp_path.glob("*.yml"))
    assert len(files) == len(shipped())
    check(*files)
    assert 'up{job=~"train.+",team="rl"}' in (tmp_path / "lost.yml").read_text()


@pytest.mark.parametrize(
    "wrong", [("--selector", "job=rl"), ("--selector", 'job="a"} or up{'), ("--dashboards-url", "grafana")]
)
def test_what_is_no_selector_or_address_is_refused(wrong, run):
    code, _, errors = run("rules", *wrong)
    assert code == 64
    assert wrong[0] in errors


def variables(board):
    return {variable["name"]: variable["current"]["value"] for variable in board["templating"]["list"]}


def test_dashboards_are_listed_printed_and_written(tmp_path, printed, run):
    names = [line.split()[0] for line in printed("dashboards").splitlines()]
    assert "heapwatch-fleet" in names
    own = ("--job", "rl", "--datasource", "mimir")
    current = variables(json.loads(printed("dashboards", "heapwatch-fleet", *own)))
    assert (current["job"], current["datasource"]) == (["rl"], "mimir")
    printed("dashboards", "--output", tmp_path)
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted(names)
    assert run("dashboards", "heapwatch-flea")[0] == 64
