"""What `make documents-test` tries and `make documents-mutation` changes is what is there today."""

import pytest

from tests.documents.changes import CHANGES, Change
from tests.documents.tables import SYSTEMS, page, written
from tests.support.repository import REPOSITORY


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_applies(change: Change) -> None:
    assert change.old in (REPOSITORY / change.file).read_text(encoding="utf-8")


def test_each_row_has_a_change_that_it_must_notice() -> None:
    changed = tuple(row for change in CHANGES for row in change.rows)
    names = [f"{system}: {row.has}" for system, rows in SYSTEMS.items() for row in rows]
    assert not [name for name in names if not any(map(name.startswith, changed))]
    assert not [start for start in changed if not any(name.startswith(start) for name in names)]


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_page_has_the_rows(system: str) -> None:
    assert page(system).read_text() == written(system)
