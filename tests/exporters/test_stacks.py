import os
import socket
from dataclasses import replace

import pytest

from heapwatch import stacks
from tests.exporters.standing_stack import StandingStack


@pytest.fixture
def stack(tmp_path):
    standing = StandingStack(tmp_path / "stack")
    yield standing
    standing.die()


def test_a_running_stack_is_found_with_what_it_says(stack):
    assert stacks.running() == [stack.stack]


def test_its_file_is_the_users_own(stack):
    (file,) = (stacks.user_folder() / "stacks").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_stack_that_was_killed_is_not_found(stack):
    stack.die()
    assert stacks.running() == []


def test_a_stack_that_was_taken_down_is_not_found(stack):
    stack.down()
    assert list((stacks.user_folder() / "stacks").iterdir()) == []
    stack.down()


def test_a_socket_in_the_file_system_answers_too(tmp_path, stack):
    path = tmp_path / "supervisor.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert replace(stack.stack, answers_at=f"unix:{path}").answers()
    assert not replace(stack.stack, answers_at=f"unix:{path}").answers()


def test_the_newest_comes_first_and_one_in_containers_last(tmp_path, stack):
    newer = StandingStack(tmp_path / "newer", started=2.0)
    contained = StandingStack(tmp_path / "contained", started=3.0)
    contained.in_containers()
    try:
        assert stacks.running() == [newer.stack, stack.stack, contained.stack]
    finally:
        newer.die()
        contained.die()


@pytest.mark.parametrize("content", ["", "[", "[]", "{}", '{"state": 1}', "\xff"])
def test_a_damaged_file_is_passed_over(stack, content):
    (file,) = (stacks.user_folder() / "stacks").iterdir()
    damaged = file.with_name("damaged.json")
    damaged.write_bytes(content.encode("latin-1"))
    damaged.chmod(0o600)
    assert stacks.running() == [stack.stack]


def test_a_file_that_others_could_have_written_is_passed_over(stack):
    (file,) = (stacks.user_folder() / "stacks").iterdir()
    file.chmod(0o666)
    assert stacks.running() == []


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secret_that_others_may_read_is_refused(tmp_path, mode):
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(mode)
    with pytest.raises(PermissionError, match=rf"others may read .*mode 0{mode:o}"):
        stacks.private_text(file)


def test_a_secret_of_another_user_is_refused(tmp_path, monkeypatch):
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(0o600)
    monkeypatch.setattr(os, "getuid", lambda: file.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="belongs to another user"):
        stacks.private_text(file)


def test_a_secret_behind_a_link_or_a_pipe_is_refused(tmp_path):
    file = tmp_path / "secret"
    file.write_text("x")
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(file)
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=name):
            stacks.private_text(tmp_path / name)


def test_a_user_without_a_home_has_no_stacks(monkeypatch):
    def homeless(_path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr("pathlib.Path.expanduser", homeless)
    assert stacks.running() == []
    with pytest.raises(OSError, match="home"):
        stacks.user_folder()
