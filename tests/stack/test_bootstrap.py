"""The environment is made whole or not at all. pip is left out here; .ci/run and `make` are its test."""

from __future__ import annotations

import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from heapwatch_stack import bootstrap
from heapwatch_stack.errors import StackError


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Each installation that `ensure` asked for, which here writes one module with its RECORD."""
    asked: list[list[str]] = []

    def install(venv: Path, requirements: list[Path]) -> None:
        asked.append([path.name for path in requirements])
        (site,) = venv.glob("lib/python3.*/site-packages")
        (site / "module.py").write_text("")
        (site / "module-1.dist-info").mkdir(exist_ok=True)
        (site / "module-1.dist-info" / "RECORD").write_text("module.py,sha256=x,0\n../../../bin/module,,\n")

    monkeypatch.setattr(bootstrap, "_install", install)
    monkeypatch.setattr(bootstrap, "_bring_pip", lambda venv: None)
    return asked


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "run.txt"
    file.write_text("module==1\n")
    return file


@pytest.fixture
def venv(tmp_path: Path, requirements: Path, installs: list[list[str]]) -> Path:
    """An environment that is complete."""
    bootstrap.ensure(tmp_path / "state" / "venv", [requirements])
    return tmp_path / "state" / "venv"


def test_two_sets_of_requirements_share_one_environment_that_is_left_alone_when_complete(
    venv: Path, requirements: Path, installs: list[list[str]]
) -> None:
    more = requirements.with_name("dev.txt")
    more.write_text("module==1\nother==1\n")
    for wanted in (requirements, more, requirements, more):
        bootstrap.ensure(venv, [wanted])
    assert installs == [["run.txt"], ["dev.txt"]]


def test_changed_pins_are_installed_into_the_same_environment(
    venv: Path, requirements: Path, installs: list[list[str]]
) -> None:
    (venv / "mark").touch()
    requirements.write_text("module==2\n")
    bootstrap.ensure(venv, [requirements])
    assert len(installs) == 2
    assert (venv / "mark").exists()


@pytest.mark.parametrize("missing", ["complete", "lib/python3.*/site-packages/module.py", "bin/python"])
def test_an_incomplete_environment_is_created_again(
    venv: Path, requirements: Path, installs: list[list[str]], missing: str
) -> None:
    (venv / "mark").touch()
    (found,) = venv.glob(missing)
    found.unlink()
    bootstrap.ensure(venv, [requirements])
    assert not (venv / "mark").exists()
    assert bootstrap.damage(venv) is None
    assert len(installs) == 2


def test_an_installation_that_failed_leaves_no_stamp(
    tmp_path: Path, requirements: Path, installs: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(venv: Path, requirements: list[Path]) -> None:
        raise StackError("pip failed: no network")

    monkeypatch.setattr(bootstrap, "_install", fail)
    with pytest.raises(StackError):
        bootstrap.ensure(tmp_path / "state" / "venv", [requirements])
    assert not (tmp_path / "state" / "venv" / "complete").exists()


def test_an_old_python_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 9, 2))
    assert bootstrap.main(["venv", "run.txt"]) == 1
    assert capsys.readouterr().err == (
        "error: Python 3.9.2 is too old: 3.11 or newer is needed (PYTHON=python3.11 make up)\n"
    )


@pytest.mark.parametrize("index", ["http://127.0.0.1:9/whl/cpu", ""])
def test_without_an_answer_from_the_torch_index_the_configured_one_serves(
    monkeypatch: pytest.MonkeyPatch, index: str
) -> None:
    monkeypatch.setenv("HEAPWATCH_TORCH_INDEX", index)
    assert bootstrap._torch_index() is None


def test_an_environment_that_somebody_else_made_is_never_removed(venv: Path, requirements: Path) -> None:
    shutil.rmtree(venv)
    (venv / "bin").mkdir(parents=True)
    (venv / "mine").write_text("work")
    with pytest.raises(StackError, match="was not made by this project"):
        bootstrap.ensure(venv, [requirements])
    assert (venv / "mine").read_text() == "work"


def test_a_state_folder_that_holds_somebodys_files_is_refused(tmp_path: Path, requirements: Path) -> None:
    project = tmp_path / "project"
    (project / "venv").mkdir(parents=True)
    (project / "thesis.tex").write_text("work")
    with pytest.raises(StackError, match="holds files that heapwatch did not make"):
        bootstrap.ensure(project / "venv", [requirements])
    assert sorted(path.name for path in project.iterdir()) == ["thesis.tex", "venv"]


def test_two_at_once_make_one_environment(
    tmp_path: Path, requirements: Path, installs: list[list[str]], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    venv, create = tmp_path / "state" / "venv", bootstrap._create
    monkeypatch.setattr(bootstrap, "_create", lambda venv: (time.sleep(0.5), create(venv)))
    (tmp_path / "state").mkdir()
    with ThreadPoolExecutor() as pool:
        for made in [pool.submit(bootstrap.ensure, venv, [requirements]) for _ in range(2)]:
            made.result(60)
    assert installs == [["run.txt"]]
    assert "another make sets up the Python environment: waiting for it" in capsys.readouterr().err
