"""What `heapwatch rules` and `heapwatch dashboards` hand out, as promtool and Grafana's form see it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from heapwatch import data
from heapwatch.cli.main import main


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def test_the_rules_are_one_file_that_promtool_accepts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rules.yml"
    file.write_text(printed(capsys, "rules"))
    done = subprocess.run(["promtool", "check", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    groups = {group["name"] for group in yaml.safe_load(file.read_text())["groups"]}
    shipped = [yaml.safe_load(path.read_text()) for path in data.path("prometheus", "rules").glob("*.yml")]
    assert groups == {group["name"] for document in shipped for group in document["groups"]}


def test_job_and_addresses_are_the_users(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = (
        "--dashboards-url",
        "https://grafana.example.com/",
        "--runbooks-url",
        "https://wiki.example.com/rl",
    )
    text = printed(capsys, "rules", "--job", "rl", *own)
    assert 'job="trainer"' not in text
    assert 'up{job="rl"}' in text
    assert "https://grafana.example.com/d/heapwatch-trainer?" in text
    assert "https://wiki.example.com/rl/TrainerLeak.md" in text
    assert "externalLabels" not in text


def test_selectors_are_the_users_and_still_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed(capsys, "rules", "--selector", 'job=~"train.+",team="rl"', "--output", str(tmp_path))
    files = sorted(tmp_path.glob("*.yml"))
    assert len(files) == len(list(data.path("prometheus", "rules").glob("*.yml")))
    done = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'up{job=~"train.+",team="rl"}' in (tmp_path / "lost.yml").read_text()


@pytest.mark.parametrize(
    "wrong", [("--selector", "job=rl"), ("--selector", 'job="a"} or up{'), ("--dashboards-url", "grafana")]
)
def test_what_is_no_selector_or_address_is_refused(
    wrong: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rules", *wrong]) == 64
    assert wrong[0] in capsys.readouterr().err


def test_dashboards_are_listed_printed_and_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [line.split()[0] for line in printed(capsys, "dashboards").splitlines()]
    assert "heapwatch-fleet" in names
    board = json.loads(
        printed(capsys, "dashboards", "heapwatch-fleet", "--job", "rl", "--datasource", "mimir")
    )
    current = {variable["name"]: variable["current"]["value"] for variable in board["templating"]["list"]}
    assert (current["job"], current["datasource"]) == (["rl"], "mimir")
    printed(capsys, "dashboards", "--output", str(tmp_path))
    assert sorted(path.stem for path in tmp_path.glob("*.json")) == sorted(names)
    assert main(["dashboards", "heapwatch-flea"]) == 64


def test_for_import_a_dashboard_asks_for_its_data_source_and_names_its_plugins(
    capsys: pytest.CaptureFixture[str],
) -> None:
    board = json.loads(printed(capsys, "dashboards", "heapwatch-fleet", "--for-import"))
    (asked,) = board["__inputs"]
    assert (asked["name"], asked["pluginId"]) == ("DS_PROMETHEUS", "prometheus")
    current = {variable["name"]: variable["current"]["value"] for variable in board["templating"]["list"]}
    assert current["datasource"] == "${DS_PROMETHEUS}"
    shown = [panel for top in board["panels"] for panel in (top, *top.get("panels", ()))]
    required = {one["id"] for one in board["__requires"]}
    assert required == {"grafana", "prometheus"} | {panel["type"] for panel in shown} - {"row"}
    plain = json.loads(printed(capsys, "dashboards", "heapwatch-fleet"))
    assert plain.keys() == board.keys() - {"__inputs", "__requires", "__elements"}
