import socket
from dataclasses import replace

import pytest

from heapwatch import stacks
from tests.support.standing_stack import StandingStack


@pytest.fixture
def stack(tmp_path):
    standing = StandingStack(tmp_path / "stack")
    yield standing
    standing.die()


@pytest.fixture
def file(stack, tmp_path):
    return tmp_path / "stack" / stacks.ANNOUNCED


def test_a_running_stack_is_found_by_a_file_in_its_folder(stack, file, tmp_path):
    assert stacks.running_in(tmp_path / "stack") == stack.stack
    assert stacks.running_in(tmp_path / "other") is None
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_stack_that_was_killed_or_taken_down_is_not_found(stack, file):
    stack.die()
    assert stacks.running_in(file.parent) is None
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


@pytest.mark.parametrize("content", ["", "[]", "{}"])
@pytest.mark.usefixtures("stack")
def test_a_damaged_file_is_none(file, content):
    file.write_text(content)
    assert stacks.running_in(file.parent) is None


@pytest.mark.usefixtures("stack")
def test_a_file_that_others_could_have_written_is_none(file):
    file.chmod(0o666)
    assert stacks.running_in(file.parent) is None
