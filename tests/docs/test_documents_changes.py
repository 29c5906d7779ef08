"""The changes that `make documents-mutation` makes, found in the sources as they are today."""

import pytest

from tests.documents.changes import CHANGES, Change
from tests.support.repository import REPOSITORY


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_change_applies(change: Change) -> None:
    assert change.old in (REPOSITORY / change.file).read_text(encoding="utf-8")
