"""Only what heapwatch made is removed; a lock is held by one process at a time."""

from __future__ import annotations

import os
import re
import shutil
import threading
from pathlib import Path

import pytest

from heapwatch.cli.main import main
from heapwatch_stack import state_folder
from heapwatch_stack.errors import StackError
from heapwatch_stack.state_folder import locked
from tests.support.repository import REPOSITORY


@pytest.fixture(autouse=True)
def no_other_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))


def test_a_project_folder_is_neither_taken_nor_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data" / "results.csv").write_text("years of work")
    monkeypatch.setenv("HEAPWATCH_STATE", str(project))
    assert main(["clean", "--mode", "native"]) == 1
    assert f"heapwatch did not make {project}: nothing was removed" in capsys.readouterr().err
    assert main(["up", "--mode", "native"]) == 1
    assert "holds files that heapwatch did not make: set HEAPWATCH_STATE" in capsys.readouterr().err
    assert [path.name for path in project.rglob("*")] == ["data", "results.csv"]


def test_clean_leaves_what_somebody_put_into_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    state_folder.make(state)
    for name in ("etc", "logs", "run"):
        (state / name).mkdir()
    (state / "notes.txt").write_text("mine")
    monkeypatch.setenv("HEAPWATCH_STATE", str(state))
    assert main(["clean", "--mode", "native"]) == 0
    assert "it stays: notes.txt" in capsys.readouterr().out
    assert {path.name for path in state.iterdir()} == {"notes.txt", state_folder.NAME}
    (state / "notes.txt").unlink()
    assert main(["clean", "--mode", "native"]) == 0
    assert not state.exists()


def test_clean_knows_every_folder_that_make_and_ci_make() -> None:
    """Written as `$(HEAPWATCH_STATE)/NAME`, `$(call own,NAME,...)`, `$state/NAME`, `... / "NAME"`."""
    scripts = [REPOSITORY / "Makefile", *(REPOSITORY / ".ci").iterdir()]
    text = "\n".join(path.read_text() for path in scripts)
    made = set(re.findall(r"HEAPWATCH_STATE\)/([\w-]+)|call own,([\w-]+)|\$state/([\w-]+)", text))
    made |= set(re.findall(r"\.heapwatch\}/([\w-]+)()()", text))
    for program in (REPOSITORY / "benchmarks").rglob("*.py"):
        made |= set(re.findall(r'"HEAPWATCH_STATE".*?\) / "([\w-]+)"()()', program.read_text()))
    names = {next(filter(None, found)) for found in made}
    assert {"venv", "docs", "site", "dist", "light", "third-party", "pictures"} <= names
    assert names <= set(state_folder.OWN)


def test_a_link_in_the_state_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    state = tmp_path / "state"
    state_folder.make(state)
    (state / "data").symlink_to(elsewhere)
    assert state_folder.remove(state) == []
    assert (elsewhere / "file").exists()


@pytest.mark.parametrize("earlier", [".heapwatch", "chosen"])
def test_a_state_folder_of_an_earlier_version_is_taken_over(tmp_path: Path, earlier: str) -> None:
    state = tmp_path / earlier
    for name in state_folder.EVIDENCE:
        (state / name).parent.mkdir(parents=True)
        (state / name).write_text("x")
    state_folder.make(state)
    assert state_folder.carried_by(state)


def test_a_folder_that_another_process_makes_at_the_same_time_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state_folder.make(tmp_path / "state")
    (tmp_path / "state" / "bootstrap.lock").touch()
    seen = iter([False, True])  # the mark appears after the first look
    monkeypatch.setattr(state_folder, "carried_by", lambda _folder: next(seen))
    state_folder.make(tmp_path / "state")


@pytest.mark.parametrize("after", range(9))
def test_an_interrupted_removal_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    state = tmp_path / "state"
    state_folder.make(state)
    venv = state / "venv"
    state_folder.make(venv)
    (state / "secrets").mkdir()
    for file in (venv / "complete", venv / "lib" / "module.py", venv / "bin" / "python", state / "lock"):
        file.parent.mkdir(exist_ok=True)
        file.touch()
    left = [after]

    def until(function):  # type: ignore[no-untyped-def]
        def call(path, *arguments, **options):  # type: ignore[no-untyped-def]
            if os.path.lexists(path):
                left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return function(path, *arguments, **options)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", until(Path.unlink))
        patched.setattr(Path, "rmdir", until(Path.rmdir))
        patched.setattr(shutil, "rmtree", until(shutil.rmtree))
        with pytest.raises(KeyboardInterrupt):
            state_folder.remove(state)
    assert state_folder.carried_by(state) or not list(state.iterdir())
    if venv.exists():
        assert state_folder.carried_by(venv) or not list(venv.iterdir())
        assert (venv / "lib").exists() or not (venv / "complete").exists()
    if state_folder.carried_by(state):
        assert state_folder.remove(state) == []


def test_the_next_waits_for_the_lock_and_not_for_ever(tmp_path: Path) -> None:
    path, waits = tmp_path / "some.lock", []
    with locked(path):
        with (
            pytest.raises(StackError, match=rf"process {os.getpid()} has held .*some\.lock for 0 s"),
            locked(path, 0.3, lambda: waits.append(path)),
        ):
            pass
        assert waits == [path]
    first = locked(path)
    first.__enter__()
    threading.Timer(0.3, first.__exit__, (None, None, None)).start()
    with locked(path, 60):
        pass
