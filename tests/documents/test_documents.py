"""Each row of the tables in `docs/systems` is tried, on one process an example."""

from collections.abc import Iterator

import pytest

from tests.documents.changes import CHANGES
from tests.documents.example import Example
from tests.documents.rows import Row
from tests.documents.tables import SYSTEMS, page, written

pytestmark = pytest.mark.timeout(3600)
CASES = [(system, row) for system, rows in SYSTEMS.items() for row in rows]
# In processes of pytest-xdist, all rows of a system are tried by one.
GROUPED = [
    pytest.param(system, row, id=f"{system}: {row.has}", marks=pytest.mark.xdist_group(system))
    for system, row in CASES
]
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


class Running:
    """One example at a time, on one process for all of its rows."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        self._folders = folders
        self._example: Example | None = None

    def example(self, name: str) -> Example:
        if self._example is None or self._example.name != name:
            self.stop()
            self._example = Example(name, self._folders.mktemp(name), *OPTIONS.get(name, ()))
        return self._example

    def stop(self) -> None:
        if self._example is not None:
            self._example.stop()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    examples = Running(tmp_path_factory)
    yield examples
    examples.stop()


@pytest.mark.parametrize(("system", "row"), GROUPED)
def test_what_the_document_has_is_here(running: Running, system: str, row: Row) -> None:
    row.check(running.example(system))


def test_each_row_has_a_change_that_it_must_notice() -> None:
    changed = tuple(row for change in CHANGES for row in change.rows)
    names = [f"{system}: {row.has}" for system, row in CASES]
    assert not [name for name in names if not any(map(name.startswith, changed))]
    assert not [start for start in changed if not any(name.startswith(start) for name in names)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_page_has_the_rows(system: str) -> None:
    assert page(system).read_text() == written(system)
