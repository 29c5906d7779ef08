"""What `make documents-test` tries is what the pages have today."""

import pytest

from tests.documents.tables import SYSTEMS, rows


@pytest.mark.parametrize("system", SYSTEMS)
def test_each_row_of_the_page_has_a_check(system: str) -> None:
    assert rows(system) == list(SYSTEMS[system])
