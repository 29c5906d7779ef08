"""Made-up recordings of a trainer, and the minute of the first verdict on them."""

from heapwatch.judge.judge import judge
from heapwatch.judge.observed import Series, observed

from heapwatch.judge.component import MEMORY

RSS = Series("trainer_process_resident_memory_bytes", (("role", "trainer"),))
VMS = Series("trainer_process_virtual_memory_bytes", (("role", "trainer"),))
START = Series("process_start_time_seconds")
SCRAPES = 320  # of 15 s: 80 minutes
GROWTH = Series("trainer_named_leaks_growth_bytes_per_minute")
SHARE = Series("trainer_named_leaks_share_ratio")
STEPS = Series("trainer_progress_total", (("unit", "step"),))
TRAINING = {STEPS: [100.0 * number for number in range(SCRAPES)]}


def judged(series, minutes=80):
    samples = {
        one: [(15.0 * number, value) for number, value in enumerate(values) if value is not None]
        for one, values in series.items()
    }
    return judge(observed(samples, 0.0, 2 * minutes)).leaks


def first(verdicts):
    """The minute of the first verdict, or None."""
    return next((index / 2 for index, growth in enumerate(verdicts) if growth is not None), None)


def reported_after(series):
    return first(judged(series)[MEMORY])


def ramp(level, per_minute, since=40.0):
    return [level + per_minute * max(0.0, number / 4 - since) for number in range(SCRAPES)]


def named(level, per_minute, share=0.8, since=5.0, **more):
    """A young run whose pace varies too much for the windows of six minutes, and a name for its growth."""
    uneven = [level + per_minute * (number + 5 * (number // 4 % 4 == 0)) / 4 for number in range(SCRAPES)]
    names = [number >= 4 * since or None for number in range(SCRAPES)]
    series = {
        RSS: uneven,
        START: [0.0] * SCRAPES,
        GROWTH: [name and per_minute * share for name in names],
        SHARE: [name and share for name in names],
    }
    return series | more.get("series", TRAINING)


def in_turns(per_minute):
    """A young run that collects for 80 of every 100 s, counting steps and leaking, and then updates."""
    collected = [sum((15 * n % 100) < 80 for n in range(number)) / 4 for number in range(SCRAPES)]
    return {
        RSS: [1e9 + per_minute * minutes for minutes in collected],
        STEPS: [1e8 + 6000.0 * minutes for minutes in collected],
        START: [0.0] * SCRAPES,
    }


def in_epochs(minutes):
    """Growth with a name in a run whose epochs take so long."""
    epochs = [float(number // (4 * minutes)) for number in range(SCRAPES)]
    return named(1e9, 12e6) | {Series("trainer_progress_total", (("unit", "epoch"),)): epochs}
