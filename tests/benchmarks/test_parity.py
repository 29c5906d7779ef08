"""What counts as the same answer of two servers."""

import re
import struct

import pytest

from benchmarks import parity
from benchmarks.leaks.remote_write import _series

WALKER = (("instance", "walker"),)


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ({WALKER: {0.0: 1.0}}, {WALKER: {0.0: 1.0 + 1e-9}}, ""),
        ({WALKER: {0.0: float("nan")}}, {WALKER: {0.0: float("nan")}}, ""),
        ({WALKER: {0.0: 1.0}}, {WALKER: {0.0: 1.1}}, "1.0 and 1.1"),
        ({WALKER: {0.0: 1.0}}, {}, "1.0 and None"),
        ({WALKER: {0.0: 1.0}}, {WALKER: {0.0: 1.0, 60.0: 1.0}}, "at 60: None and 1.0"),
    ],
)
def test_the_first_difference_is_named(one, other, what):
    found = parity.difference(one, other)
    assert found.endswith(what)
    assert bool(found) == bool(what)


def test_the_mark_of_a_series_that_ended_is_sent_as_it_is():
    assert struct.pack("<Q", 0x7FF0000000000002) in _series({"__name__": "up"}, parity.STALE, 0)


def test_every_rule_and_panel_is_asked():
    asked = [query.where for query in parity.queries()]
    assert "TrainerLeak" in asked
    assert "job:trainer_resource:level" in asked
    assert any(where.startswith("heapwatch-fleet / ") for where in asked)


def test_victoria_metrics_lengthens_no_range_of_the_rules():
    text = " ".join(query.expression for query in parity.queries())
    ranges = re.findall(r"deriv\([^\[]*\[(\d+)s\]", text)
    shortest = int(parity.SHORTEST_WINDOW.removesuffix("s"))
    assert 165 in map(int, ranges)
    assert min(map(int, ranges)) >= shortest
