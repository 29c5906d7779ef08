"""Arrays of objects: how many of their items are filled, read without running code of the items."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from heapwatch.measure.introspection.object_arrays import filled, filled_items, is_object_array, item_at


class Hostile:
    def __eq__(self, other: object) -> bool:
        raise AssertionError("code of an item runs")

    def __bool__(self) -> bool:
        raise AssertionError("code of an item runs")

    __hash__ = None  # type: ignore[assignment]


class Subclass(np.ndarray):
    pass


def test_only_plain_arrays_of_objects_are_containers() -> None:
    assert is_object_array(np.empty(3, dtype=object))
    assert not is_object_array(np.zeros(3))
    assert not is_object_array(np.empty(3, dtype=object).view(Subclass))
    assert not is_object_array(np.zeros(3, dtype=[("one", object)]))
    assert not is_object_array([None])


@pytest.mark.parametrize("make", [lambda size: np.empty(size, object), lambda size: np.zeros(size, object)])
@pytest.mark.parametrize("size", [10, 1000, 50_000])
@pytest.mark.parametrize("share", [0.0, 0.013, 0.5, 0.99, 1.0])
def test_an_array_that_is_filled_from_its_beginning_is_counted_exactly(make, size, share) -> None:
    array = make(size)
    count = round(share * size)
    for at in range(count):
        array[at] = Hostile()
    assert filled(array) == count
    assert len(filled_items(array) or []) == count


def test_an_array_with_gaps_is_estimated() -> None:
    array = np.empty(6400, dtype=object)
    for at in range(0, 6400, 2):
        array[at] = Hostile()
    for at in range(3000, 6400):
        array[at] = Hostile()
    assert filled(array) == pytest.approx(4900, rel=0.2)


def test_an_array_of_more_dimensions_is_read_flat() -> None:
    array = np.empty((30, 40), dtype=object)
    array[:3] = "text"
    assert filled(array) == 120
    assert filled_items(array) == ["text"] * 120


def test_a_huge_array_is_not_copied() -> None:
    assert filled_items(np.broadcast_to(np.empty(1, dtype=object), 2_000_000)) is None


def test_an_array_that_becomes_shorter_meanwhile_has_nothing_there() -> None:
    assert item_at(np.empty(3, dtype=object), 7) is None


RESIZED = """
import sys, threading, time
import numpy as np
from heapwatch.measure.introspection.object_arrays import filled_items
from heapwatch.measure.sizing.tensor_storage import array_items

def read():
    while time.monotonic() < end:
        array_items(objects)
        filled_items(objects)

sys.setswitchinterval(1e-6)
objects = np.empty(100, dtype=object)
end = time.monotonic() + 2
thread = threading.Thread(target=read)
thread.start()
count = 0
while time.monotonic() < end:
    count += 1
    objects.resize(50 + count * 37 % 20000, refcheck=False)
thread.join()
"""


def test_an_array_that_is_resized_meanwhile_is_not_read_at_its_old_address() -> None:
    command = [sys.executable, "-c", RESIZED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)
