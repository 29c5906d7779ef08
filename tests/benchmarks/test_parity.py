"""What counts as the same answer of two servers."""

import re
import struct

import pytest

from benchmarks import parity
from benchmarks.leaks.scenario import Scenario
from benchmarks.prometheus import _series

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


def test_a_panel_may_have_a_gap_while_a_trainer_is_not_scraped():
    bridged, gap = {WALKER: {0.0: 1.0, 60.0: 1.0}}, {WALKER: {0.0: 1.0}}
    assert not parity.difference(bridged, gap, frozenset({("walker", 60.0)}))
    assert parity.difference(bridged, gap, frozenset({("walker", 120.0)}))
    assert parity.difference(gap, bridged, frozenset({("walker", 60.0)}))


def test_a_trainer_is_unread_once_its_last_sample_is_too_old():
    trainer = Scenario("walker", {"trainer_process_threads{}": [1.0, *[None] * 9, 1.0]}, scrape_seconds=30)
    found = parity.unread([trainer], 1000.0, 400)
    assert {at for _, at in found} == {985.0 + second for second in range(151, 300)}


def test_the_mark_of_a_series_that_ended_is_sent_as_it_is():
    assert struct.pack("<Q", 0x7FF0000000000002) in _series({"__name__": "up"}, parity.STALE, 0)


@pytest.fixture(scope="module")
def queries():
    return parity.queries()


def test_every_rule_and_panel_is_asked(queries):
    asked = [query.where for query in queries]
    assert "TrainerLeak" in asked
    assert "job:trainer_resource:level" in asked
    assert any(where.startswith("heapwatch-fleet / ") for where in asked)


def test_victoria_metrics_lengthens_no_range_of_the_rules(queries):
    text = " ".join(query.expression for query in queries)
    ranges = re.findall(r"deriv\([^\[]*\[(\d+)s\]", text)
    assert 165 in map(int, ranges)
    assert min(map(int, ranges)) >= parity.SHORTEST_SECONDS
