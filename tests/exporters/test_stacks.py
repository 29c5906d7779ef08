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


@pytest.fixture
def file(stack):
    (file,) = (stacks.user_folder() / "stacks").iterdir()
    return file


def test_a_running_stack_is_found_by_a_file_of_the_user(stack, file):
    assert stacks.running() == [stack.stack]
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_a_stack_that_was_killed_or_taken_down_is_not_found(stack, file):
    stack.die()
    assert stacks.running() == []
    stack.down()
    assert not file.exists()
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


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_a_damaged_file_is_skipped(stack, file, content):
    damaged = file.with_name("damaged.json")
    damaged.write_bytes(content.encode("latin-1"))
    damaged.chmod(0o600)
    assert stacks.running() == [stack.stack]


def test_a_file_that_others_could_have_written_is_skipped(file):
    file.chmod(0o666)
    assert stacks.running() == []
