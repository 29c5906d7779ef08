"""The files of the state folder, and whether they have changed."""

from __future__ import annotations

import dataclasses
import os
import stat
from pathlib import Path

import pytest
import yaml

from heapwatch.http.signing import webhook_token
from heapwatch_stack import configuration
from heapwatch_stack.configuration import fingerprint
from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / "state")})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (
            "HEAPWATCH_NOTIFICATIONS_FILE",
            "/nowhere",
            "HEAPWATCH_NOTIFICATIONS_FILE is '/nowhere', which cannot",
        ),
        ("HEAPWATCH_TOKEN", "two words", "HEAPWATCH_TOKEN or HEAPWATCH_TOKEN_FILE cannot be used"),
    ],
)
def test_a_wrong_value_is_named(settings: Settings, name: str, value: str, message: str) -> None:
    with pytest.raises(StackError, match=message):
        configuration.lay_out(dataclasses.replace(settings, environment={name: value}))


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_every_folder_of_the_state_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        made = Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / "above" / "state")})
        configuration.lay_out(made)
    finally:
        os.umask(before)
    inside = [made.state / name for name in ("etc", "logs", "run", "secrets", "targets")]
    folders = [made.state.parent, made.state, *inside]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o700}


def test_the_links_of_alerts_lead_to_this_stack(tmp_path: Path) -> None:
    ports = {"HEAPWATCH_DASHBOARDS_PORT": "4000", "HEAPWATCH_RECEIVER_PORT": "4001"}
    made = Settings.from_environment({"HEAPWATCH_STATE": str(tmp_path / "state"), **ports})
    configuration.lay_out(made)
    rendered = yaml.safe_load((made.etc / "prometheus.yml").read_text())
    assert rendered["global"]["external_labels"] == {
        "heapwatch_dashboards": "http://127.0.0.1:4000",
        "heapwatch_runbooks": "http://127.0.0.1:4001/runbooks",
    }


def test_laying_out_twice_keeps_the_token(settings: Settings) -> None:
    configuration.lay_out(settings)
    before = settings.token_file.read_text()
    configuration.lay_out(settings)
    assert settings.token_file.read_text() == before
    assert settings.token_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["HEAPWATCH_TOKEN", "HEAPWATCH_TOKEN_FILE"])
def test_a_token_of_the_environment_is_that_of_every_service(
    settings: Settings, tmp_path: Path, name: str
) -> None:
    (tmp_path / "own-token").write_text("chosen\n")
    given = {"HEAPWATCH_TOKEN": "chosen", "HEAPWATCH_TOKEN_FILE": str(tmp_path / "own-token")}
    reported = dataclasses.replace(settings, environment={name: given[name]})
    configuration.lay_out(reported)
    assert reported.token_file.read_text() == "chosen\n"
    assert reported.webhook_token_file.read_text() == webhook_token("chosen") + "\n"
    assert {file.stat().st_mode & 0o777 for file in reported.token_file.parent.iterdir()} == {0o600}
    assert settings.logs.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "leak.yml").write_text("a: 1")
    (tmp_path / "notes.txt").write_text("nothing reads this")
    return tmp_path


def test_names_and_contents_of_what_is_read_count(folder: Path) -> None:
    first = fingerprint(folder)
    (folder / "more.txt").write_text("nor this")
    assert fingerprint(folder) == first
    assert len(first) == 16
    (folder / "rules" / "leak.yml").write_text("a: 2")
    changed = fingerprint(folder)
    (folder / "rules" / "leak.yml").rename(folder / "rules" / "growth.yml")
    renamed = fingerprint(folder)
    (folder / "more.yml").write_text("")
    assert len({first, changed, renamed, fingerprint(folder)}) == 4
