"""The environment is made whole or anew. pip is left out here; .ci/run and `make` are its test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from heapwatch_stack import bootstrap
from heapwatch_stack.errors import StackError


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requirements of each installation that `ensure` asked for."""
    asked: list[str] = []

    def make(command: list[str], _state: Path) -> None:
        (Path(command[-1]) / "bin").mkdir(parents=True)
        (Path(command[-1]) / "bin" / "python").touch()

    monkeypatch.setattr(bootstrap, "_run", make)
    monkeypatch.setattr(bootstrap, "_install", lambda venv, file: asked.append(file.name))
    return asked


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    file = tmp_path / "run.txt"
    file.write_text("module==1\n")
    return file


@pytest.fixture
def venv(tmp_path: Path, requirements: Path, installs: list[str]) -> Path:
    """An environment that is complete."""
    bootstrap.ensure(tmp_path / "state" / "venv", requirements)
    return tmp_path / "state" / "venv"


def test_two_sets_of_requirements_share_one_environment(
    venv: Path, requirements: Path, installs: list[str]
) -> None:
    more = requirements.with_name("dev.txt")
    more.write_text("module==1\nother==1\n")
    for wanted in (requirements, more, requirements, more):
        bootstrap.ensure(venv, wanted)
    assert installs == ["run.txt", "dev.txt"]


def test_changed_pins_are_installed_into_the_same_environment(
    venv: Path, requirements: Path, installs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bootstrap, "_run", lambda *_: pytest.fail("the environment is made again"))
    requirements.write_text("module==2\n")
    bootstrap.ensure(venv, requirements)
    assert installs == ["run.txt"] * 2


@pytest.mark.parametrize("damage", ["no stamp", "no interpreter", "another interpreter"])
def test_an_incomplete_environment_is_made_anew(
    venv: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    made: list[Path] = []
    monkeypatch.setattr(bootstrap, "_run", lambda command, _state: made.append(Path(command[-1])))
    if damage == "another interpreter":
        monkeypatch.setattr(bootstrap.sys, "version", "3.99")
    else:
        (venv / ("complete" if damage == "no stamp" else "bin/python")).unlink()
    bootstrap.ensure(venv, requirements)
    assert made == [venv]


def test_an_installation_that_failed_leaves_no_stamp(
    tmp_path: Path, requirements: Path, installs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(venv: Path, requirements: Path) -> None:
        raise StackError("pip failed: no network")

    monkeypatch.setattr(bootstrap, "_install", fail)
    with pytest.raises(StackError):
        bootstrap.ensure(tmp_path / "state" / "venv", requirements)
    assert not (tmp_path / "state" / "venv" / "complete").exists()


def test_a_command_that_fails_is_one_line_with_its_first_error(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo collecting; echo 'ERROR: no network'; echo 'ERROR: more'; exit 1"]
    with pytest.raises(StackError, match=r"failed: ERROR: no network \(output: .*pip\.log\)$"):
        bootstrap._run(command, tmp_path)


def test_an_old_python_is_reported_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap.sys, "version_info", (3, 9, 2))
    assert bootstrap.main(["venv", "run.txt"]) == 1
    assert capsys.readouterr().err == (
        "error: Python 3.9.2 is too old: 3.11 or newer is needed (PYTHON=python3.11 make up)\n"
    )


CONFIGURED = """global.cert='/etc/ssl/certs/ca.crt'
install.index-url='https://packages.example/simple'
"""


@pytest.mark.parametrize("fails", ["uv.txt", "run.txt", None])
def test_pip_installs_what_uv_cannot(
    tmp_path: Path, requirements: Path, monkeypatch: pytest.MonkeyPatch, fails: str | None
) -> None:
    """uv knows only a part of the configuration of pip. It gets the index that pip uses."""
    by: list[str] = []

    def run(command: list[str], _state: Path) -> None:
        locked = next((Path(part).name for part in command if part.endswith(".txt")), "")
        by.append(f"{'pip' if '-m' in command else 'uv'} {locked}".strip())
        if "-m" not in command:
            assert command[-2:] == ["--index-url", "https://packages.example/simple"]
        if locked == fails and by[-1] != "pip run.txt":
            raise StackError("no network")

    monkeypatch.setattr(bootstrap, "_run", run)
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda *_, **__: SimpleNamespace(stdout=CONFIGURED))
    monkeypatch.setattr(bootstrap, "WITHOUT_TORCH", requirements.name)
    bootstrap._install(tmp_path, requirements)
    assert (
        by
        == {
            "uv.txt": ["pip uv.txt", "pip run.txt", "pip"],
            "run.txt": ["pip uv.txt", "uv run.txt", "pip run.txt", "pip"],
            None: ["pip uv.txt", "uv run.txt", "pip"],
        }[fails]
    )
