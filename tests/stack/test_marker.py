"""Only what heapwatch made is removed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from heapwatch.cli.main import main
from heapwatch_stack import marker


def test_a_project_folder_is_neither_taken_nor_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    (project / "data").mkdir(parents=True)
    (project / "data" / "results.csv").write_text("years of work")
    monkeypatch.setenv("HEAPWATCH_STATE", str(project))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert main(["clean", "--mode", "native"]) == 1
    assert f"heapwatch did not make {project}: nothing was removed" in capsys.readouterr().err
    assert main(["up", "--mode", "native"]) == 1
    assert "holds files that heapwatch did not make: set HEAPWATCH_STATE" in capsys.readouterr().err
    assert [path.name for path in project.rglob("*")] == ["data", "results.csv"]


def test_clean_leaves_what_somebody_put_into_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    marker.make(state)
    for name in ("etc", "logs", "run"):
        (state / name).mkdir()
    (state / "notes.txt").write_text("mine")
    monkeypatch.setenv("HEAPWATCH_STATE", str(state))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert main(["clean", "--mode", "native"]) == 0
    assert "it stays: notes.txt" in capsys.readouterr().out
    assert {path.name for path in state.iterdir()} == {"notes.txt", marker.NAME}
    (state / "notes.txt").unlink()
    assert main(["clean", "--mode", "native"]) == 0
    assert not state.exists()


def test_a_link_in_the_state_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    state = tmp_path / "state"
    marker.make(state)
    (state / "data").symlink_to(elsewhere)
    assert marker.remove(state) == []
    assert (elsewhere / "file").exists()


@pytest.mark.parametrize("earlier", [".heapwatch", "chosen"])
def test_a_state_folder_of_an_earlier_version_is_taken_over(tmp_path: Path, earlier: str) -> None:
    state = tmp_path / earlier
    for name in marker.EVIDENCE:
        (state / name).parent.mkdir(parents=True)
        (state / name).write_text("x")
    marker.make(state)
    assert marker.carried_by(state)


def test_a_folder_that_another_process_makes_at_the_same_time_is_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marker.make(tmp_path / "state")
    (tmp_path / "state" / "bootstrap.lock").touch()
    seen = iter([False, True])  # the mark appears after the first look
    monkeypatch.setattr(marker, "carried_by", lambda _folder: next(seen))
    marker.make(tmp_path / "state")


@pytest.mark.parametrize("after", range(9))
def test_an_interrupted_removal_can_be_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    state = tmp_path / "state"
    marker.make(state)
    venv = state / "venv"
    marker.make(venv)
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
            marker.remove(state)
    assert marker.carried_by(state) or not list(state.iterdir())
    if venv.exists():
        assert marker.carried_by(venv) or not list(venv.iterdir())
        assert (venv / "lib").exists() or not (venv / "complete").exists()
    if marker.carried_by(state):
        assert marker.remove(state) == []
