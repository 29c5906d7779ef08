"""Phase, growth, count and start of a leak, on made histories of a machine too busy to count in time."""

import random
import re
from dataclasses import replace

import pytest

from heapwatch.recording.points import Point, Run
from heapwatch.report.document import as_text, finding_lines
from heapwatch.report.findings import analyse
from heapwatch.report.interval import interval_lines
from heapwatch.text.numbers import size_change
from tests.support.runs import PHASES, generations, on_a_busy_machine

LEAKS = {
    "TradingEnvironment": {"of": 2, "made": 30, "leaking": 39e6, "phase": 0},
    "Tensor": {"of": 280, "made": 60, "leaking": 12e6, "phase": 1},
    "DDPGAgent": {"of": 17, "made": 16, "leaking": 25e6, "phase": 2},
}


@pytest.mark.parametrize("kind", LEAKS)
@pytest.mark.parametrize("begins", [6, 14])
def test_the_answers_are_right_or_it_is_too_early(kind, begins):
    leak = LEAKS[kind]
    answered = 0
    for seed in range(6):
        for count in (begins + 9, begins + 14, begins + 20):
            report = analyse(on_a_busy_machine(seed, begins=begins, count=count, kind=kind, **leak))
            found = report.finding
            if found is None:
                assert report.objects[kind].verdict != "healthy"
                continue
            answered += 1
            assert found.phase == PHASES[leak["phase"]]
            assert abs(found.since - begins) <= 1
            assert found.objects[kind].per_cycle == pytest.approx(leak["made"], rel=0.15)
            assert found.growth_bytes_per_cycle == pytest.approx(leak["leaking"] + 2e6, rel=0.15)
    assert answered >= 10


def at_checkpoints(seed, *, begins, count, kind, of, made, phase, leaking):
    """A run that counts at a checkpoint after each phase alone, while memory says nothing: it is noisy."""
    chance, time = random.Random(seed), 0.0
    alive = {"TradingEnvironment": 2, "DDPGAgent": 17, kind: of}
    bounds = {"TradingEnvironment": 2, "DDPGAgent": 17}
    counted = dict(alive), dict.fromkeys(alive, 0.0)

    def point(event, after, name="", **progress):
        nonlocal time
        time += after
        objects, counted_at = counted
        return Point(
            time, event, 1e9 + chance.gauss(0, 50e6), name, delta_bytes=chance.gauss(0, 50e6),
            progress=progress, objects=objects, counted_at=counted_at, bounds=bounds,
        )  # fmt: skip

    points = [point("start", 0.0)]
    for generation in range(1, count + 1):
        for number, name in enumerate(PHASES):
            if number == phase and generation >= begins:
                alive[kind] += made
            points.append(point("phase", 1.0, name, generation=generation - 1))
            counted = dict(alive), dict.fromkeys(alive, time + chance.random())
            points.append(point("checkpoint", chance.uniform(1.0, 2.0), name, generation=generation - 1))
        points.append(point("cycle", 0.0, generation=generation))
    return Run("erl_trading", tuple(points))


@pytest.mark.parametrize("kind", ["TradingEnvironment", "DDPGAgent"])
@pytest.mark.parametrize("begins", [1, 2, 5, 12])
def test_the_answers_are_exact_where_checkpoints_count(kind, begins):
    """From the first generation that leaks on, and none before."""
    leak = LEAKS[kind]
    for seed, count in enumerate(range(max(2, begins - 2), begins + 9)):
        report = analyse(at_checkpoints(seed, begins=begins, count=count, kind=kind, **leak))
        if count < begins:
            assert report.finding is None
            continue
        found = report.finding.objects[kind]
        alive = leak["of"] + leak["made"] * (count - begins + 1)
        assert (report.finding.phase, report.finding.since) == (PHASES[leak["phase"]], begins)
        assert (found.baseline, found.current, found.per_cycle) == (leak["of"], alive, leak["made"])
        assert report.objects[kind] == found


@pytest.mark.parametrize("old", [0, 1, 2])
def test_the_age_of_a_count_is_said_with_it(old):
    """In the last generations it could not be counted."""
    run = at_checkpoints(1, begins=3, count=9, kind="TradingEnvironment", **LEAKS["TradingEnvironment"])
    last = [point for point in run.points if point.cycle("generation") <= 9 - old][-1]
    points = [
        replace(point, objects=last.objects, counted_at=last.counted_at) if point.time > last.time else point
        for point in run.points
    ]
    report = analyse(Run("erl_trading", tuple(points)))
    count = next(line for line in finding_lines(report.finding, report.unit) if " count: " in line)
    said = f", last read in generation {9 - old})" if old else "increasing by 30 each generation)"
    assert count.endswith(said)


def test_of_two_leaks_the_class_that_rose_most_names_the_phase():
    run = at_checkpoints(1, begins=3, count=9, kind="TradingEnvironment", **LEAKS["TradingEnvironment"])
    points = []
    for point in run.points:
        evolved = point.progress.get("generation", 0) + (point.phase == PHASES[2])
        objects = {**point.objects, "DDPGAgent": 17 + 16 * max(0, evolved - 2)}
        points.append(replace(point, objects=objects))
    found = analyse(Run("erl_trading", tuple(points))).finding
    assert set(found.objects) == {"TradingEnvironment", "DDPGAgent"}
    assert (found.phase, found.since) == (PHASES[0], 3)


def test_a_report_has_one_rate_for_one_thing():
    """In the finding, in the table of objects, in that of memory, in each report of the log."""
    run = on_a_busy_machine(3, begins=6, count=24, **LEAKS["TradingEnvironment"])
    report = analyse(run)
    text = as_text(report, 30) + str(interval_lines(report, "generation", 24))
    assert len(set(re.findall(r"increasing by ([\d.]+) each", text))) == 1
    growth = size_change(report.finding.growth_bytes_per_cycle)
    assert f"Growth: {growth} per generation" in text
    assert re.search(rf"Growth per generation +{re.escape(growth)}\n", text)
    assert re.search(rf"process \(RSS\) +\S+ MB \({re.escape(growth)}/generation\)", text)


def test_counts_of_few_phases_do_not_outweigh_memory():
    """In one generation training made a few; all others were made where nobody counted."""
    points = []
    for point in generations(20, environments=16, evaluation=39e6, other=2e6).points:
        generation = point.cycle("generation")
        fresh = generation == 12 and point.phase in ("evaluate_population", "train_population")
        made = 10 * (point.phase == "train_population") if fresh else 0
        alive = {"TradingEnvironment": 2 + 16 * generation + made}
        counted_at = point.time if fresh or point.event == "cycle" else point.time - 1000
        points.append(replace(point, objects=alive, counted_at=dict.fromkeys(alive, counted_at)))
    found = analyse(Run("erl_trading", tuple(points))).finding
    assert found is not None
    assert found.phase == "evaluate_population"


def test_a_class_that_is_expected_twice_needs_two_counts():
    """Counted in generations 7, 12 and 21 alone; memory tells in which generation between them it began."""
    points = []
    for point in generations(28, evaluation=0, other=0).points:
        generation = point.cycle("generation")
        counted = max(number for number in (0, 7, 12, 21) if number <= generation)
        alive = {"TradingEnvironment": 2 + 30 * max(0, counted - 8)}
        resident = 4.23e9 + 40e6 * max(0, generation - 8)
        made = 40e6 * (generation > 8 and point.phase == "evaluate_population")
        points.append(
            replace(
                point,
                resident_bytes=resident,
                delta_bytes=made,
                objects=alive,
                counted_at={
                    "TradingEnvironment": point.time if counted == generation else 60.0 * 3 * counted
                },
                bounds={"TradingEnvironment": 2},
            )
        )
    for last in (14, 20, 28):
        report = analyse(Run("erl_trading", tuple(p for p in points if p.cycle("generation") <= last)))
        found = report.finding
        assert found is not None
        assert report.objects["TradingEnvironment"] == found.objects["TradingEnvironment"]
        assert (found.phase, found.since) == ("evaluate_population", 9)
        assert found.growth_bytes_per_cycle == pytest.approx(40e6)
        assert found.objects["TradingEnvironment"].per_cycle == pytest.approx(30)
        assert "past its bound of 2, increasing by 30" in found.objects["TradingEnvironment"].reason
