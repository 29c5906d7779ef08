import functools
import re

import pytest

from benchmarks import exactness

# From the page: making the cases imports every library, which each worker of the tests would do.
NAMES = [
    name
    for name in re.findall(r"^\| ([^|]+) \|", exactness.DOCUMENT.read_text(), re.MULTILINE)
    if name not in ("object", "---")
]


@functools.cache
def cases():
    return {case.name: case for case in exactness.cases()}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_an_object_holds_is_within_the_error_that_is_stated(name):
    row = cases()[name].row()

    assert row.holds, row.cells()
    assert row.size.error_bytes > 0 or not row.size.unread


def test_a_row_outside_its_bound_is_seen():
    row = exactness.Row("", 10**6, "heap", exactness.Size(bytes=900_000, error_bytes=99_999))
    assert not row.holds
    assert exactness.Row("", 10**6, "heap", exactness.Size(bytes=900_000, error_bytes=100_000)).holds
    assert not exactness.Row("", 512, "gpu", exactness.Size(bytes=0, gpu_bytes=0)).holds
    assert not exactness.Row("", 0, "heap", exactness.Size(bytes=exactness.OBJECTS + 1)).holds


def test_every_case_is_in_the_page():
    assert sorted(cases()) == sorted(NAMES)
    assert "**NO**" not in exactness.DOCUMENT.read_text()
