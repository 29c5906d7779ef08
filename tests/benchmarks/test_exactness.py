import pytest

from benchmarks import exactness


@pytest.mark.parametrize("case", exactness.cases(), ids=lambda case: case.name)
def test_what_an_object_holds_is_within_the_error_that_is_stated(case):
    row = case.row()

    assert row.holds, row.cells()
    assert row.size.error_bytes > 0 or not row.size.unread


def test_a_row_outside_its_bound_is_seen():
    row = exactness.Row("", {"heap": 10**6}, exactness.Size(bytes=900_000, error_bytes=99_999))
    assert not row.holds
    assert exactness.Row("", {"heap": 10**6}, exactness.Size(bytes=900_000, error_bytes=100_000)).holds
    assert not exactness.Row("", {"gpu": 512}, exactness.Size(bytes=0, gpu_bytes=0)).holds
    assert not exactness.Row("", {"heap": 0}, exactness.Size(bytes=exactness.OBJECTS + 1)).holds


def test_every_case_is_in_the_page():
    page = exactness.DOCUMENT.read_text()

    assert all(f"| {case.name} |" in page for case in exactness.cases())
    assert "**NO**" not in page
