"""Only what heapwatch made is taken and removed; a lock is held by one process at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from heapwatch.cli.main import main
from heapwatch_stack import state_folder
from heapwatch_stack.errors import StackError
from heapwatch_stack.state_folder import locked


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


def test_clean_removes_the_state_folder_and_follows_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    state = tmp_path / "state"
    state_folder.make(state)
    (state / "logs").mkdir()
    (state / "data").symlink_to(elsewhere)
    monkeypatch.setenv("HEAPWATCH_STATE", str(state))
    assert main(["clean", "--mode", "native"]) == 0
    assert not state.exists()
    assert (elsewhere / "file").exists()


def test_one_process_at_a_time_holds_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "some.lock"
    for _ in range(2):
        with (
            locked(path),
            pytest.raises(StackError, match=r"another heapwatch or make holds .*some\.lock: wait for it"),
            locked(path),
        ):
            pass
