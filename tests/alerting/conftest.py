"""Real servers for tests of the way from an alert to its cleanup."""

from collections.abc import Iterator

import pytest

from tests.support.alerting.stage import Stage, stage


@pytest.fixture(scope="module")
def shared_scene() -> Iterator[Stage]:
    with stage() as scene:
        yield scene


@pytest.fixture
def scene(shared_scene: Stage) -> Iterator[Stage]:
    yield shared_scene
    shared_scene.clear()
