"""supervisord itself reads what is rendered here."""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heapwatch_stack.errors import StackError
from heapwatch_stack.services import Service
from heapwatch_stack.settings import Endpoint, Settings
from heapwatch_stack.supervision import Supervisor
from tests.support.ports import free_ports
from tests.support.running_stack import of_stack
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow

ECHO = "import os, time; open(os.environ['SAID'], 'w').write(os.environ['WORD']); time.sleep(60)"


def service(tmp_path: Path, word: str) -> Service:
    (port,) = free_ports(1)
    environment = {"SAID": str(tmp_path / "said"), "WORD": word}
    return Service(Endpoint("echo", port, "PORT", "/"), (sys.executable, "-c", ECHO), environment)


def supervisor(state: Path) -> Supervisor:
    for folder in ("etc", "logs", "run"):
        (state / folder).mkdir(parents=True)
    return Supervisor(Settings.from_environment({"HEAPWATCH_STATE": str(state)}))


@contextmanager
def running(state: Path, *services: Service) -> Iterator[Supervisor]:
    one = supervisor(state)
    one.configure(services)
    one.start()
    try:
        yield one
    finally:
        one.shut_down()
        assert of_stack(state) == []
    assert not one.running()


def test_awkward_values_reach_the_service_as_they_are(tmp_path: Path) -> None:
    word, said = "50% of 'it', a=b;#1 %(here)s", tmp_path / "said"
    with running(tmp_path / "state", service(tmp_path, word)):
        assert wait_for(lambda: said.exists() and said.read_text(), "the service") == word


@pytest.mark.parametrize("word", ["'\"", "a #b", "a ;b", "a\nb"])
def test_a_value_that_cannot_be_written_is_refused(tmp_path: Path, word: str) -> None:
    with pytest.raises(StackError, match="the supervisor cannot take"):
        supervisor(tmp_path / "state").configure([service(tmp_path, word)])


def test_a_changed_service_is_restarted_and_another_is_not(tmp_path: Path) -> None:
    first, second = service(tmp_path, "one"), service(tmp_path, "two")
    second = dataclasses.replace(second, endpoint=dataclasses.replace(second.endpoint, name="other"))
    with running(tmp_path / "state", first, second) as one:
        before = one.processes()
        changed = dataclasses.replace(first, environment={**first.environment, "WORD": "three"})
        one.configure([changed, second])
        assert one.apply() == ["echo"]
        after = one.processes()
        assert after["echo"]["pid"] != before["echo"]["pid"]
        assert after["other"]["pid"] == before["other"]["pid"]
        assert one.apply() == []


def test_the_services_of_a_killed_supervisor_end_with_it(tmp_path: Path) -> None:
    """A half of a stack would look healthy and raise no alert."""
    state = tmp_path / "state"
    with running(state, service(tmp_path, "word")) as one:
        wait_for(lambda: (tmp_path / "said").exists(), "the service")
        os.kill(one.pid(), signal.SIGKILL)
        wait_for(lambda: not of_stack(state), "the end of all")
