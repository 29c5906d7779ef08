"""Which stack a trainer joins, and with which token."""

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from heapwatch import discovery, stacks
from heapwatch.registration import Registration, choose, folders
from tests.support.standing_stack import StandingStack


@pytest.fixture(autouse=True)
def no_folder_is_named(monkeypatch):
    monkeypatch.delenv("HEAPWATCH_TARGETS_DIR")


@pytest.fixture
def stand():
    """Makes a running stack: the default one, unless it is given another name."""
    standing = []

    def make(name="stack"):
        standing.append(StandingStack(stacks.user_folder() / name))
        return standing[-1]

    yield make
    for stack in standing:
        stack.die()


def registration(**about):
    return Registration("127.0.0.1", 7777, **about)


def joined(**about):
    joining = registration(**about)
    joining.refresh()
    return joining


def targets(folder):
    return [path.name for path in folder.glob("*.json")]


def test_a_trainer_joins_the_running_stack_and_takes_its_token(stand):
    stack = stand()
    joining = registration()
    assert joining.refresh()
    assert joining.token == "the-stacks-token"
    assert len(targets(stack.targets)) == 1
    line = joining.describe()
    assert line == f"the stack in {stack.stack.state} scrapes it"
    joining.remove()
    assert targets(stack.targets) == []


def test_a_stack_of_another_state_folder_is_not_joined_unasked(stand, monkeypatch):
    other = stand("other")
    joining = registration()
    assert not joining.refresh()
    assert joining.token is None
    assert targets(other.targets) == []
    assert targets(stacks.user_folder() / "targets")
    joining.remove()
    monkeypatch.setenv("HEAPWATCH_STATE", other.stack.state)
    asked = registration()
    assert asked.refresh()
    assert asked.token == "the-stacks-token"
    asked.remove()
    for folder, stack in ((other.targets, other.stack), (other.targets / "else", None)):
        monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(folder))
        assert choose() == (folder, stack)


def test_the_virtual_environment_of_a_clone_has_the_clones_stack(stand, monkeypatch, tmp_path):
    clone = stand("clone")
    stand()
    monkeypatch.setattr(stacks, "_around", lambda: Path(clone.stack.state))
    assert choose().stack != clone.stack
    Path(clone.stack.state, stacks.MARK).touch()
    assert choose().stack == clone.stack


def test_a_trainer_without_a_stack_waits_and_joins_the_first(stand):
    waiting = registration()
    assert not waiting.refresh()
    assert targets(stacks.user_folder() / "targets")
    assert "no stack scrapes it" in waiting.describe()
    assert waiting.token is None
    stack = stand()
    assert waiting.refresh()
    assert not targets(stacks.user_folder() / "targets")
    assert targets(stack.targets)
    assert waiting.token == "the-stacks-token"


def test_the_target_waits_for_a_stack_and_is_written_again_after_clean(stand):
    stack = stand()
    joining = joined()
    stack.down()
    assert joining.refresh()
    assert targets(stack.targets)
    for path in stack.targets.iterdir():
        path.unlink()
    joining.refresh()
    assert targets(stacks.user_folder() / "targets")


def test_a_trainer_waits_for_its_own_stack_and_moves_to_no_other(stand):
    stack = stand()
    joining = joined()
    stack.down()
    other = stand("other")
    assert joining.refresh()
    assert (len(targets(stack.targets)), targets(other.targets)) == (1, [])


def test_a_stack_in_containers_does_not_reach_this_machine(stand):
    stand().in_containers()
    joining = joined()
    assert "runs in containers" in joining.describe()
    assert targets(stacks.user_folder() / "targets")


def test_the_trainers_own_token_wins_and_a_different_one_is_reported_once(stand, caplog):
    stand()
    with caplog.at_level(logging.WARNING, "heapwatch"):
        joining = registration(token="given-by-code")
        joining.refresh()
        joining.refresh()
    assert joining.token == "given-by-code"
    assert [record.getMessage() for record in caplog.records if "another token" in record.getMessage()]
    assert len(caplog.records) == 1
    assert "given-by-code" not in caplog.text
    assert "the-stacks-token" not in caplog.text


def test_a_token_that_others_may_read_is_not_taken(stand, caplog):
    stack = stand()
    stack.token_file.chmod(0o640)
    joining = registration()
    with caplog.at_level(logging.WARNING, "heapwatch"):
        joining.refresh()
        joining.refresh()
    assert joining.token is None
    assert "cannot ask it to clean up" in joining.describe()
    assert [record.getMessage().startswith("the token of the stack") for record in caplog.records] == [True]


def test_a_token_given_wrongly_is_the_callers_error():
    with pytest.raises(ValueError, match="printable ASCII"):
        registration(token="")


def test_every_folder_that_may_hold_a_trainer(stand, monkeypatch):
    stack = stand()
    joining = joined()
    assert folders() == [stack.targets, stacks.user_folder() / "targets"]
    stack.down()  # its trainer runs on, and its target stays
    joining.refresh()
    assert choose().folder != stack.targets
    assert any(targets(folder) for folder in folders())
    joining.remove()
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", "/y")
    assert [str(folder) for folder in folders()] == ["/y"]


def test_a_trainer_renews_its_target_and_sweeps_what_expired(tmp_path, monkeypatch):
    monkeypatch.setenv("HEAPWATCH_TARGETS_DIR", str(tmp_path))
    joining = joined()
    (mine,) = tmp_path.glob("*.json")
    removed = discovery.TargetFile(tmp_path, "removed", 7777)
    removed._owner = replace(removed._owner, pid_namespace="pid:[1]")
    removed.write()
    for path in (mine, removed.path):
        os.utime(path, (1, 1))
    joining.refresh()
    assert len(targets(tmp_path)) == 2
    monkeypatch.setattr(discovery, "RENEWAL_SECONDS", 0.0)
    joining.refresh()
    assert targets(tmp_path) == [mine.name]
    assert mine.stat().st_mtime > 1
