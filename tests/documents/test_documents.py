"""Each row of the tables in `docs/systems` is tried, on one process an example."""

from collections.abc import Iterator

import pytest

from docs.systems import samples
from tests.documents.boundaries import tried
from tests.documents.example import Example
from tests.documents.rows import Check
from tests.documents.tables import NUMBERS, SYSTEMS

pytestmark = pytest.mark.timeout(3600)
# At these rates an epoch takes a second and a generation two, or more: a cycle has its lines and its samples.
OPTIONS = {
    "metta_ppo": (
        "trainer=simple.medium",
        "trainer.memory_report_interval=2",
        "trainer.memory_leak_threshold_mb=4.5",
        "--rate=64",
    ),
    "erl_trading": ("--rate=200",),
}


@pytest.fixture(scope="class")
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Example]:
    name = request.cls.system
    started = Example(name, tmp_path_factory.mktemp(name), *OPTIONS.get(name, ()))
    yield started
    started.stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.cls is not None:
        checks = SYSTEMS[metafunc.cls.system]
        metafunc.parametrize(
            "check", checks.values(), ids=[f"{metafunc.cls.system}: {row}" for row in checks]
        )


class Tried:
    """One process of pytest-xdist tries all rows of a system, on one process of its example."""

    system: str

    def test_what_the_document_has_is_here(self, example: Example, check: Check) -> None:
        check(example)


class TestWalker(Tried):
    system = "walker"


class TestErlTrading(Tried):
    system = "erl_trading"


class TestMettaPpo(Tried):
    system = "metta_ppo"


class TestFireDqn(Tried):
    system = "fire_dqn"


@pytest.mark.parametrize("system", NUMBERS)
def test_each_number_is_told_at_it_and_not_below(system: str) -> None:
    tried(NUMBERS[system])(None)


@pytest.mark.parametrize(
    ("name", "command"), [one for one in samples.COMMANDS if "examples.check.alerts" in one[1]]
)
def test_what_alerts_say_on_the_pages_is_what_the_rules_say(name: str, command: str) -> None:
    assert samples.block(name, command) in samples.page(name).read_text(encoding="utf-8")
