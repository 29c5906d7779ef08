from __future__ import annotations

import re
from dataclasses import replace
from math import cos, exp

import pytest

from heapwatch.explain.attribution import explain, is_unexplained, plausible
from heapwatch.explain.candidate import Candidate
from heapwatch.explain.findings import Explanation, Finding, described, message
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.sites import Site
from heapwatch.judge.component import Component
from heapwatch.judge.level import LevelSeries
from heapwatch.judge.memory import WARM_UP_SECONDS, MemoryGrowth
from heapwatch.judge.trainer import Leak
from tests.support.judged_memory import (
    MB,
    JudgedMemory,
    candidate,
    container,
    curve,
    growth_of,
    item,
    judged,
    memory,
)

CROWD = Leak(Component("entities", "robots"), "growth", 60.0, 90.0)


@pytest.mark.parametrize("share", [1, 2 / 3])
def test_a_list_that_holds_all_growth_or_most_of_it_is_the_leak(share):
    found = judged(100, memory(48 * MB, 100), candidate(share * 40 * 60, 20_000, 100))
    assert found.verdict == "leak"
    (finding,) = found.findings
    assert finding.path == "trainer.history"
    assert finding.is_leak
    assert finding.share == pytest.approx(share, abs=0.04)
    assert found.explained_share == pytest.approx(share, abs=0.04)
    assert "`trainer.history`" in message(found)


@pytest.mark.parametrize("capacity", [None, 30_000])
def test_containers_that_keep_the_same_items_are_one_finding(capacity):
    same = [candidate(2400, 20_000, 100, traits=item(1, at, at + 1, opaque=False)) for at in (2, 3, 4)]
    same[0].known.path, same[1].known.path = "trainer.again", "agent.memory"
    same[1] = replace(same[1], capacity=capacity)
    (finding,) = judged(100, memory(48 * MB, 100), *same).findings
    assert finding.is_leak
    assert finding.path == ("trainer.again" if capacity else "agent.memory")
    assert finding.shared_with is not None
    assert finding.bytes_per_minute == pytest.approx(48 * MB, rel=0.05)
    assert f"`{finding.shared_with}` keeps the same items" in described(finding)


def swinging(per_minute: float, seconds: int) -> JudgedMemory:
    """Memory that rises and falls by 150 MB, and that is high at the beginning."""
    return curve(
        lambda at: 900 * MB + per_minute * at / 60 + 150 * MB * cos(at / 11) - 0.2 * at * MB, seconds
    )


@pytest.mark.parametrize("each", [20_000, 40_000])
def test_growth_of_memory_that_noise_hides_is_that_of_the_leak(each):
    found = judged(300, swinging(2400 * each, 300), candidate(2400, each, 300))
    assert growth_of(swinging(2400 * each, 300), 300).per_minute < 2100 * each
    assert found.growth_bytes_per_minute == pytest.approx(2400 * each, rel=0.02)
    assert found.findings[0].share == pytest.approx(1.0)


@pytest.mark.parametrize("sized", [1.0, 1.1, 2.0])
def test_leaks_do_not_grow_by_more_than_the_process(sized):
    """Items that share what they hold seem to be larger."""
    found = judged(300, memory(48 * MB, 300), candidate(2400, sized * 20_000, 300))
    (finding,) = found.findings
    assert finding.bytes_per_minute == pytest.approx(48 * MB, rel=0.02)
    assert finding.items_per_minute == pytest.approx(2400, rel=0.02)
    assert "20 kB each" in message(found)
    assert ("items share memory" in message(found)) is (sized == 2.0)
    assert finding.bytes == pytest.approx(300 * 40 * 20_000 * (1.1 if sized == 1.1 else 1), rel=0.02)


def test_the_time_that_is_left_fits_the_rate_that_is_said():
    """Memory stood still, and has grown fast for three minutes."""
    grown = curve(lambda at: 500 * MB + 0.02 * at * MB + 0.6 * MB * max(0, at - 400), 580)
    found = judged(580, grown)
    said = re.search(r"grows by ([\d.]+) MB/min", message(found))
    assert said
    assert found.time_left is not None
    at = 60 * growth_of(grown, 580).ram_left / (float(said[1]) * MB)
    assert found.time_left.least <= 1.02 * at
    assert found.time_left.most >= 0.98 * at


def test_what_a_buffer_will_hold_does_not_change_with_what_all_its_items_share():
    said = []
    for seconds in (100, 150, 400):
        filling = candidate(2400, 1, seconds, capacity=30_000)
        filling.known.held = LevelSeries()
        for at in (50, seconds - 1):
            filling.known.held.add(at, 50 * MB + round(40 * at) * 20_000)
        said.append(
            re.findall(r"will hold (.*) when", message(judged(seconds, memory(48 * MB, seconds), filling)))
        )
    assert said == [["650 MB"]] * 3


@pytest.mark.parametrize(("pause", "stopped", "leaks"), [(1, 50, True), (1, 70, False), (60, 70, True)])
def test_a_container_that_is_constant_for_longer_than_before_is_no_leak(pause, stopped, leaks):
    """All in seconds: between two additions, since the last one."""
    known = container(lambda at: 40 * (min(at, 900 - stopped) // pause * pause), 900)
    found = judged(900, memory(48 * MB, 900), Candidate(known, known.items.growth(225)))
    assert found.findings[0].is_leak == leaks


@pytest.mark.parametrize(("went_on", "graph"), [(True, False), (True, True), (False, False)])
def test_a_leak_is_one_as_long_as_its_container_grows(went_on, graph):
    """It grew fast, and slowly for the last minutes."""
    known = container(
        lambda at: 2400 * min(at, 300) / 60 + went_on * max(0, at - 300), 500, not graph and 20_000
    )
    slow = Candidate(known, known.items.growth(0), item(graph=graph, opaque=graph))
    assert not slow.rising
    grown = curve(lambda at: (500 + 0.8 * at) * MB, 500)
    for since, leaks in ((None, False), (0.0, went_on)):
        known.leaking_since = since
        found = judged(500, grown, slow)
        assert any(one.is_leak and one.path == known.path for one in found.findings) is leaks


@pytest.mark.parametrize(
    ("seconds", "entities", "leaking", "leaks"),
    [(100, 90, (), False), (200, 90, (), True), (100, 90, (CROWD,), True), (100, 10, (), True)],
    ids=["while entities come", "after that", "entities that leak", "more than one for each"],
)
def test_items_that_come_one_for_each_new_entity_are_a_fill(seconds, entities, leaking, leaks):
    """Until 90 seconds an entity comes each second or more rarely; an item of 1.2 MB comes each second."""
    grown = memory(72 * MB, seconds)
    for at in range(0, seconds, 30):
        grown.entities[CROWD.component].add(at, min(at, 90) * entities / 90)
    levels = MemoryGrowth(grown, 0.0, seconds, leaking)
    found = explain(levels, [candidate(60, 1.2 * MB, seconds)])
    assert any(one.is_leak for one in found.findings) is leaks
    assert (found.verdict == "leak") is leaks


@pytest.mark.parametrize(("quiet", "named_within"), [(10, 8), (60, 8), (300, 17)])
def test_a_leak_that_begins_after_hours_is_named_soon_after_it_is_certain(quiet, named_within):
    """All in minutes."""

    def level(at: float) -> float:
        return 500 * MB + 40 * MB * max(0.0, at / 60 - quiet) + MB * (at % 7)

    def judged_after(minutes: int) -> Explanation:
        seconds = 60 * minutes
        known = container(lambda at: 2000 * max(0.0, at / 60 - quiet), seconds, every=5)
        levels = growth_of(curve(level, seconds), seconds)
        return explain(levels, [Candidate(known, known.items.growth(levels.start))])

    assert judged_after(quiet + 3).verdict != "leak"
    found = judged_after(quiet + named_within)
    assert (found.verdict, found.findings[0].path) == ("leak", "trainer.history")
    assert found.growth_bytes_per_minute == pytest.approx(40 * MB, rel=0.15)
    assert found.explained_share > 0.8
    assert judged_after(quiet + 200).findings[0].is_leak


def test_a_phase_that_fills_a_list_after_hours_is_no_leak():
    """An evaluation of five minutes each hour, whose results are dropped."""

    def phase(at: float) -> float:
        return max(0.0, at % 3600 / 60 - 55)

    seconds = 3 * 3600 - 10
    grown = curve(lambda at: 500 * MB + 40 * MB * phase(at), seconds)
    known = container(lambda at: 2000 * phase(at), seconds, every=5)
    levels = growth_of(grown, seconds)
    assert levels.start == WARM_UP_SECONDS
    found = explain(levels, [Candidate(known, known.items.growth(levels.start))])
    assert found.verdict != "leak"


@pytest.mark.parametrize(
    ("capacity", "verdict", "kind", "bound"),
    [(10_000, "filling", "buffer", 10_000), (1000, "leak", "container", None)],
)
def test_a_buffer_is_filling_within_its_bound_and_leaks_past_it(capacity, verdict, kind, bound):
    found = judged(100, memory(48 * MB, 100), candidate(2400, 20_000, 100, capacity=capacity))
    assert found.verdict == verdict
    assert (found.findings[0].kind, found.findings[0].capacity_items) == (kind, bound)


def test_a_buffer_that_will_not_fit_is_reported_while_it_is_small():
    lines = Site("train.py", 7, "store")
    found = judged(100, memory(2 * MB, 100), candidate(60, 24e6, 100, capacity=14_000, site=lines))
    assert (found.verdict, found.findings[0].fits) == ("will not fit", False)
    assert "336 GB when full" in message(found)
    assert "19.5 GB of memory is left" in message(found)
    assert "filled at train.py:7" in message(found)
    early = judged(30, memory(2 * MB, 30), candidate(60, 24e6, 30, capacity=14_000))
    assert early.verdict == "too early"


@pytest.mark.parametrize(("per_minute", "size", "rate"), [(95 * MB, 400, 95 * MB), (97 * MB, None, 48 * MB)])
def test_instances_that_weigh_more_than_memory_grew_have_no_size(per_minute, size, rate):
    found = Finding("type", None, "Edge", 4, 400, 60.0, per_minute)
    levels = growth_of(memory(48 * MB, 600), 600)
    assert levels.per_minute == pytest.approx(48 * MB, rel=0.01)
    checked = plausible(found, levels)
    assert checked.bytes == size
    assert checked.bytes_per_minute == pytest.approx(rate, rel=0.01)


def test_a_container_that_was_filled_before_the_first_step_is_no_leak():
    grown = memory(48 * MB, 300)
    loaded = candidate(2400, 20_000, 300)
    grown.first_step_at = 290.0
    levels = growth_of(grown, 300)
    loaded = replace(loaded, growth=loaded.known.items.growth(levels.start))
    assert explain(levels, [loaded]).verdict != "leak"


def test_growth_goes_to_the_container_whose_items_cannot_be_measured():
    levels = growth_of(memory(48 * MB, 100), 100)
    found = explain(levels, [candidate(2400, 4, 100, traits=item(graph=True))])
    (finding,) = found.findings
    assert (finding.path, finding.inferred) == ("trainer.history", True)
    assert found.explained_share == pytest.approx(1.0, abs=0.05)
    assert is_unexplained(found, levels)


@pytest.mark.parametrize("emptied", ["some", "trimmed"])
def test_what_is_made_again_and_rises_by_chance_gets_nothing(emptied):
    lengths = [0, 150, 3, 190, 80, 6, 120, 199, 60, 9, 180, 40, 12, 160, 100, 15]
    anew = KnownContainer("log_probs", "list", "list")
    for at, length in enumerate(lengths):
        anew.items.add(15.0 * at, length)
    growth = anew.items.growth(0.0)
    assert growth.rising
    by_chance = Candidate(anew, growth, item(graph=True), emptied=emptied)
    assert not by_chance.rising
    kept = candidate(12, 0, 240, traits=item())
    (first, *_) = judged(240, memory(12 * MB, 240), by_chance, kept).findings
    assert first.path == "trainer.history"
    # A replay memory that loses one item an episode swings by little.
    assert candidate(2400, 4, 100, emptied=emptied).rising


def test_objects_that_cannot_be_measured_leak_when_they_and_memory_keep_their_pace():
    held = {seconds: candidate(60, 4, seconds, traits=item()) for seconds in (100, 200)}
    assert judged(100, memory(48 * MB, 100), held[100]).verdict == "too early"
    assert judged(200, memory(48 * MB, 200), held[200]).verdict == "leak"
    warming = curve(lambda at: 500 * MB + 300 * MB * (1 - exp(-at / 120)), 200)
    assert judged(200, warming, held[200]).verdict != "leak"


@pytest.mark.parametrize(
    ("paths", "path"),
    [
        (('tracker.history["policy"]', 'tracker.history["value"]'), "tracker.history[*]"),
        (("agent.policy_losses", "agent.value_losses"), "agent.*"),
        (("main().policy_losses", "main().value_losses"), "main().policy_losses"),
    ],
)
def test_what_siblings_keep_and_nothing_measures_is_one_finding(paths, path):
    for names in (paths, paths[::-1]):
        alike = [candidate(2700, 4, 200, traits=item(graph=True)) for _ in names]
        for one, name in zip(alike, names, strict=True):
            one.known.path = name
        found = judged(200, memory(60 * MB, 200), *alike)
        assert [one.path for one in found.findings if one.is_leak] == [path]
    said = message(found)
    assert f"It is not measured, but probably kept by `{path}` (list of Tensor, +" in said
    assert "%" not in said
    assert " each" not in said


def test_what_keeps_graphs_is_known_when_it_is_announced():
    early = judged(50, memory(48 * MB, 50), candidate(2400, 4, 50, traits=item(graph=True)))
    (left,) = re.findall(r"known in (\d+) s\.", early.detail)
    later = 50 + int(left)
    at = later + 15  # no more than half as late again
    found = judged(at, memory(48 * MB, at), candidate(2400, 4, at, traits=item(graph=True)))
    assert (early.verdict, found.verdict) == ("too early", "leak")
    assert int(left) < 60


def test_of_the_names_of_one_graph_the_one_whose_line_is_known_speaks():
    faster, slower = (candidate(rate, 0, 200, traits=item(graph=True)) for rate in (2500, 2400))
    slower.known.path = "state"
    located = replace(slower, site=Site("train.py", 30, "<module>"))
    found = judged(200, memory(48 * MB, 200), faster, located)
    assert found.findings[0].path == "state"
    assert found.findings[0].inferred
    faster.known.path = "module._"
    named = judged(200, memory(48 * MB, 200), faster, replace(slower, site=None))
    assert named.findings[0].path == "state"


@pytest.mark.parametrize(
    ("start", "per_minute", "emptied", "too_short", "long_enough"),
    [
        (500 * MB, 48 * MB, "never", 36, 44),
        (500 * MB, 48 * MB, "some", 76, 84),
        (500 * MB, 48 * MB, "whole", 300, 460),  # until memory itself is known to leak
        (500 * MB, 48 * MB, "trimmed", 1240, 1300),
        (100 * MB, 3 * MB, "never", 140, 170),  # by less than 8 MB
        (100 * MB, 5 * MB, "never", 120, 144),  # by 9 MB
        (100 * MB, 2.2 * MB, "never", 172, 200),  # by less than the leak rules look at
        (2000 * MB, 30 * MB, "never", 90, 114),  # by less than 2 % of the process
    ],
)
def test_how_long_a_container_has_to_rise(start, per_minute, emptied, too_short, long_enough):
    """The first quarter of the time is left out: 30 s, 60, 960, 120, and until it is 5 or 40 MB."""
    for seconds, leaks in ((too_short, False), (long_enough, True)):
        grown = memory(per_minute, seconds, start=start)
        rising = candidate(600, per_minute / 600, seconds, emptied=emptied)
        assert any(finding.is_leak for finding in judged(seconds, grown, rising).findings) is leaks, seconds


def test_one_in_each_of_several_objects_is_reported_as_their_sum():
    several = candidate(2400, 20_000, 100, capacity=10_000)
    several.known.multiplicity = 3.0
    (finding,) = judged(100, memory(48 * MB, 100), several).findings
    assert finding.items == 3 * several.known.items.last
    assert finding.items_per_minute == pytest.approx(7200, rel=0.01)
    assert finding.capacity_items == 30_000

    array = candidate(48e6, 1, 100)
    array.known.kind = "array"
    (finding,) = judged(100, memory(48 * MB, 100), array).findings
    assert (finding.items, finding.items_per_minute) == (None, None)
    assert finding.bytes == array.known.items.last


@pytest.mark.parametrize(
    ("limit", "verdict", "left"),
    [(1.10e9, "will not fit", "524 MB of memory is left"), (1.25e9, "filling", "")],
)
def test_a_buffer_fits_while_what_it_will_still_take_is_left(limit, verdict, left):
    """It holds 80 MB of the process's 580 and will hold 640: the process ends at 1.14 GB."""
    grown = memory(48 * MB, 100, limit=limit)
    found = judged(100, grown, candidate(2400, 20_000, 100, capacity=32_000))
    assert found.verdict == verdict
    assert left in message(found)
    assert ("memory is left" in message(found)) is bool(left)


@pytest.mark.parametrize(("share", "is_reported"), [(0.01, False), (0.03, True)])
def test_what_takes_a_fiftieth_of_the_growth_is_reported_beside_the_leak(share, is_reported):
    """It is material: a hundredth of 4.8 GB a minute."""
    large, small = (candidate(2400 * part, 2 * MB, 300, capacity=10**6) for part in (1 - share, share))
    small.known.path = "agent.cache"
    findings = judged(300, memory(4800 * MB, 300, limit=1e15), large, small).findings
    assert ("agent.cache" in [finding.path for finding in findings]) is is_reported


def test_twenty_findings_are_reported_at_most():
    many = [candidate(100, 2 * MB, 300) for _ in range(30)]
    for at, growing in enumerate(many):
        growing.known.path = f"agent{at}.memory"
    assert len(judged(300, memory(6000 * MB, 300, limit=1e15), *many).findings) == 20


@pytest.mark.parametrize(("rise", "rising"), [(20, False), (70, True)])
def test_the_floor_of_what_is_emptied_rises_by_half_of_its_swing(rise, rising):
    """It swings by a hundred items; by chance its floor may rise a little at each of a few readings."""
    known = container(lambda at: 1000 + rise * at / 300 + 100 * (at % 20) / 20, 300)
    assert Candidate(known, known.items.growth(), emptied="some").rising is rising
    assert Candidate(known, known.items.growth()).rising
