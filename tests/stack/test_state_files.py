"""Anything may lie under the names of the stack's own files: nothing waits for it, and one line names it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from heapwatch.discovery import TargetFile
from heapwatch.measure.process.process_tree import KernelKills
from heapwatch.runtime.own_files import UnusableFile
from heapwatch_stack import configuration, containers, preflight, state_folder, watchdog
from heapwatch_stack.errors import StackError
from heapwatch_stack.native import NativeStack
from heapwatch_stack.settings import Settings
from tests.support.repository import REPOSITORY
from tests.support.unreadable_files import UNREADABLE

TRAINER = """
import pathlib, sys
from heapwatch.discovery import TargetFile
TargetFile(pathlib.Path(sys.argv[1]), "127.0.0.1", 7777).write()
"""
SPECIAL = ("a pipe", "a link to /dev/zero", "a link to nothing", "a socket")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = Settings.from_environment(
        {
            "HEAPWATCH_STATE": str(tmp_path / "state"),
            "HEAPWATCH_CHECKOUT": str(REPOSITORY),
            "XDG_STATE_HOME": str(tmp_path),
        }
    )
    configuration.lay_out(made)
    return made


@pytest.mark.parametrize("kind", UNREADABLE)
@pytest.mark.parametrize("name", ["etc/alertmanager.yml", "secrets/webhook-token", "secrets/token"])
def test_what_is_in_the_place_of_a_file_of_ours_is_replaced(settings: Settings, name: str, kind: str) -> None:
    file = settings.state / name
    file.unlink()
    UNREADABLE[kind](file)
    if kind == "a folder":
        with pytest.raises(OSError, match=file.name):
            configuration.lay_out(settings)
        return
    configuration.lay_out(settings)
    found = file.lstat()
    assert stat.S_ISREG(found.st_mode)
    if name.startswith("secrets"):
        assert found.st_mode & 0o077 == 0


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


@pytest.mark.parametrize("folder", ["etc", "logs", "run", "secrets", "targets"])
def test_a_pipe_that_a_service_would_wait_for_is_named_before_it_starts(
    settings: Settings, folder: str
) -> None:
    preflight.check_files(settings.state, settings.targets)
    os.mkfifo(settings.state / folder / "pipe")
    with pytest.raises(StackError, match=f"{folder}/pipe is a pipe or a device: remove it"):
        preflight.check_files(settings.state, settings.targets)


def test_a_link_to_an_endless_device_is_named_too_and_one_to_nothing_is_not(settings: Settings) -> None:
    (settings.targets / "nothing.json").symlink_to("/nowhere")
    preflight.check_files(settings.state, settings.targets)
    (settings.targets / "zero.json").symlink_to("/dev/zero")
    with pytest.raises(StackError, match=r"zero\.json is a pipe or a device"):
        preflight.check_files(settings.state, settings.targets)


@pytest.mark.parametrize("kind", [*SPECIAL, "a folder"])
def test_up_and_down_do_not_wait_for_a_lock_that_is_none(settings: Settings, kind: str) -> None:
    UNREADABLE[kind](settings.state / "run" / "lock")
    with pytest.raises(UnusableFile, match="run/lock"):
        NativeStack(settings, print).down()


def test_who_holds_the_lock_is_reported(settings: Settings) -> None:
    stack = NativeStack(settings, print)
    with stack._locked(), pytest.raises(StackError, match=f"process {os.getpid()} is bringing"):
        stack.down()


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_was_loaded_and_the_last_line_of_a_log_are_read_without_waiting(
    settings: Settings, kind: str
) -> None:
    UNREADABLE[kind](settings.state / "run" / "loaded.json")
    UNREADABLE[kind](settings.logs / "prometheus.log")
    stack = NativeStack(settings, print)
    assert stack._loaded() in ({}, {"a": [float("inf"), None]})
    assert "prometheus.log" in stack._last_line("prometheus")


def test_the_last_line_of_a_large_log_is_its_last(settings: Settings) -> None:
    with (settings.logs / "prometheus.log").open("w") as log:
        log.writelines(f"line {number}\n" for number in range(100_000))
    assert NativeStack(settings, print)._last_line("prometheus").startswith("line 99999 ")


@pytest.fixture(scope="module")
def dead_target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target of a trainer that has ended without removing it."""
    folder = tmp_path_factory.mktemp("dead")
    subprocess.run([sys.executable, "-c", TRAINER, folder], check=True)
    (file,) = folder.glob("*.json")
    return file


@pytest.mark.parametrize("kind", UNREADABLE)
def test_the_watchdog_sweeps_beside_it(
    settings: Settings, kind: str, dead_target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    UNREADABLE[kind](settings.targets / "a.json")
    shutil.copy2(dead_target, settings.targets)
    watchdog._sweep(settings.targets, KernelKills())
    assert "has ended without removing its target" in capsys.readouterr().out
    assert {path.name for path in settings.targets.iterdir()} == {"a.json", "lost"}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_the_watchdog_starts_the_stack_again_whatever_its_log_is(
    settings: Settings, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    UNREADABLE[kind](settings.logs / "watchdog.log")
    started: list[object] = []
    monkeypatch.setenv("HEAPWATCH_STATE", str(settings.state))
    monkeypatch.setattr(watchdog.select, "select", lambda *_: [[1]])
    monkeypatch.setattr(watchdog.Supervisor, "start", lambda supervisor: started.append(supervisor))
    assert watchdog.main() == 0
    assert len(started) == 1


@pytest.mark.parametrize("kind", [*SPECIAL, "a folder"])
def test_make_does_not_wait_for_a_lock_that_is_none(tmp_path: Path, kind: str) -> None:
    UNREADABLE[kind](tmp_path / "bootstrap.lock")
    with (
        pytest.raises(UnusableFile, match=r"bootstrap\.lock"),
        state_folder.locked(tmp_path / "bootstrap.lock"),
    ):
        pass


@pytest.mark.parametrize("kind", SPECIAL)
def test_the_mark_of_a_folder_is_a_file(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / state_folder.OWN_FOLDER
    folder.mkdir()
    UNREADABLE[kind](folder / state_folder.NAME)
    with pytest.raises(UnusableFile, match=state_folder.NAME):
        state_folder.make(folder)


@pytest.mark.parametrize("kind", ["a pipe", "a link to /dev/zero", "a gigabyte", "no UTF-8"])
def test_a_secret_that_the_containers_are_given_is_a_small_file(tmp_path: Path, kind: str) -> None:
    given, handed = tmp_path / "given", tmp_path / "handed"
    for folder in (given, handed):
        folder.mkdir()
    for name in containers.READERS:
        UNREADABLE[kind](given / name)
    with pytest.raises((StackError, OSError), match=next(iter(containers.READERS))):
        containers.prepare(tmp_path, tmp_path, given, handed)


def test_a_target_of_this_process_stays_where_the_watchdog_looks(settings: Settings) -> None:
    target = TargetFile(settings.targets, "127.0.0.1", 7777)
    target.write()
    watchdog._sweep(settings.targets, KernelKills())
    assert target.path.exists()
    target.remove()
