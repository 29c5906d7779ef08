from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from heapwatch.measure.sizing.rings import Ring, capacity_beside, ring_of

ROWS = 1000


def arrays(rows: int = ROWS) -> dict[str, Any]:
    return {"observations": np.zeros((rows, 250), np.float32), "rewards": torch.zeros(rows)}


@pytest.mark.parametrize(
    ("attributes", "filled"),
    [
        ({"capacity": ROWS, "pos": 250, "full": False}, 250),
        ({"buffer_size": ROWS, "pos": 250, "full": True}, ROWS),
        ({"max_size": ROWS, "ptr": 3, "size": 400}, 400),
        ({"memory_size": ROWS, "mem_cntr": 5 * ROWS}, ROWS),
    ],
)
def test_a_ring_is_known_by_its_arrays_and_its_position(attributes: dict[str, Any], filled: int) -> None:
    ring = ring_of(attributes | arrays())
    assert ring == Ring(filled, ROWS, ROWS * 250 * 4 + ROWS * 4)
    assert ring.held_bytes == ring.nbytes * filled / ROWS


@pytest.mark.parametrize("rows", [ROWS, 4 * ROWS])
def test_each_environment_has_rows_of_its_own(rows: int) -> None:
    ring = ring_of({"buffer_size": ROWS, "n_envs": 4, "pos": 10, "full": False} | arrays(rows))
    assert ring is not None
    assert (ring.filled, ring.rows) == (40, 4 * ROWS)


@pytest.mark.parametrize(
    "attributes",
    [
        {"pos": 250, "full": False} | arrays(),
        {"capacity": ROWS} | arrays(),
        {"capacity": ROWS, "pos": 250} | arrays(ROWS - 1),
        {"capacity": ROWS, "pos": 250, "rewards": np.zeros(ROWS)},
        {"capacity": ROWS, "pos": 250, "scalar": np.float32(1), "point": np.array(1.0)},
    ],
    ids=["no rows", "no position", "arrays of other lengths", "below a megabyte", "no rows in an array"],
)
def test_what_is_no_ring(attributes: dict[str, Any]) -> None:
    assert ring_of(attributes) is None


@pytest.mark.parametrize(
    ("attributes", "bound"),
    [
        ({"maxlen": 100, "_capacity": 1e6}, 100),
        ({"maxlen": 10, "_capacity": 1e6}, 1_000_000),
        ({"maxlen": 10, "limit": 0.5}, None),
    ],
)
def test_the_lowest_bound_that_is_not_exceeded_holds(attributes: dict[str, Any], bound: int | None) -> None:
    assert capacity_beside(attributes, 50) == bound
