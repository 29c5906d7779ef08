"""What `make documents-test` tries and `make documents-mutation` changes is what is there today."""

import pytest

from tests.documents.changes import CHANGES, Change
from tests.documents.tables import SYSTEMS, rows
from tests.support.repository import REPOSITORY


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_applies(change: Change) -> None:
    assert change.old in (REPOSITORY / change.file).read_text(encoding="utf-8")


def test_each_row_has_a_change_that_it_must_notice() -> None:
    changed = tuple(row for change in CHANGES for row in change.rows)
    names = [f"{system}: {row}" for system, checks in SYSTEMS.items() for row in checks]
    assert not [name for name in names if not any(map(name.startswith, changed))]
    assert not [start for start in changed if not any(name.startswith(start) for name in names)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_row_of_the_page_has_a_check(system: str) -> None:
    assert rows(system) == list(SYSTEMS[system])
