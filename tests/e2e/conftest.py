from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.running_stack import Stack


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The whole real stack on free ports, with a state folder of its own."""
    running = Stack(tmp_path_factory.mktemp("stack"))
    try:
        done = running.run("up")
        assert done.returncode == 0, done.stdout + done.stderr
        yield running
    finally:
        running.run("down")
        assert running.processes() == []
