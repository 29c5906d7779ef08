"""The report's verdicts are those of the definition of the rules, on the same recording."""

import random

import pytest

from heapwatch.analysis.judge import judge
from heapwatch.analysis.leak import MEMORY
from heapwatch.analysis.observed import Series, observed
from heapwatch.recording.points import Point, Run
from heapwatch.report.definition import verdicts_of
from heapwatch.report.findings import analyse

MINUTES = 150


def sampled(memory, *, every=15.0, **levels):
    """A run that counts no cycles: a point every so many seconds; levels are given the minute."""
    times = [every * number for number in range(int(60 * MINUTES / every))]
    return Run(
        "plain",
        tuple(
            Point(
                time,
                "sample",
                memory(time / 60),
                **{name: level(time / 60) for name, level in levels.items()},
            )
            for time in times
        ),
    )


def noisy(level, seed=1):
    noise = random.Random(seed)
    return lambda minute: level(minute) + noise.gauss(0, 3e6)


CURVES = {
    "leak": noisy(lambda minute: 2e9 + 12e6 * max(0.0, minute - 60)),
    "slow leak": noisy(lambda minute: 2e9 + 4e6 * minute),
    "steady": noisy(lambda minute: 2e9),
    "warm-up": noisy(lambda minute: 3e9 - 1e9 * 0.93**minute),
    "step": noisy(lambda minute: 2e9 + 5e8 * (minute > 100)),
    "leak after a peak at the start": noisy(lambda minute: 2e9 + 12e6 * minute + 9e8 * (minute < 3)),
    "sawtooth": noisy(lambda minute: 2e9 + 30e6 * (minute % 10)),
}


@pytest.mark.parametrize("name", CURVES)
def test_memory_leaks_where_the_definition_says_so(name):
    run = sampled(CURVES[name])
    samples = {
        Series("trainer_process_resident_memory_bytes", (("role", "trainer"),)): [
            (point.time, point.resident_bytes) for point in run.points
        ],
        Series("process_start_time_seconds"): [(point.time, 0.0) for point in run.points],
    }
    leaks = MEMORY in judge(observed(samples, 0.0, 2 * MINUTES)).leaking()
    assert leaks == ("leak" in name)
    assert (analyse(run).memory.verdict == "leak") == leaks


def test_what_is_counted_leaks_where_the_definition_says_so():
    run = sampled(
        CURVES["steady"],
        items=lambda minute: {
            "static bodies": 155 + round(4 * max(0.0, minute - 130)),
            "dynamic bodies": 80.0,
        },
    )
    report = analyse(run)
    assert {name: judged.verdict for name, judged in report.objects.items()} == {
        "static bodies": "leak",
        "dynamic bodies": "healthy",
    }
    assert report.finding is not None


def test_points_that_lie_far_apart_are_not_judged_by_it():
    assert verdicts_of(sampled(CURVES["leak"], every=240.0)) is None
    assert verdicts_of(Run("plain", ())) is None
