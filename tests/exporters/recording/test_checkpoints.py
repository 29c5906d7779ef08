import logging

import pytest

from heapwatch.recording.checkpoints import Checkpoints, Memory


class Trainer:
    """A process with so much memory and so many objects."""

    def __init__(self, *gpu):
        self.resident = 4_230_000_000
        self.objects = {"TradingEnvironment": 2, "DDPGAgent": 16}
        self.now = 1000.0
        self.checkpoints = Checkpoints(
            lambda: Memory(self.resident, 12_450_000_000, *gpu), lambda: self.objects, lambda: self.now
        )

    def run(self, *steps):
        self.checkpoints.take("baseline")
        for label, resident, environments in steps:
            self.now += 60
            self.resident = resident
            self.objects = {"TradingEnvironment": environments, "DDPGAgent": 17}
            self.checkpoints.take(label)
        return self.checkpoints


@pytest.fixture
def logged(caplog):
    caplog.set_level(logging.INFO, "heapwatch")
    return caplog


def test_a_line_reports_the_change_since_the_point_before_the_same_point_and_the_first(logged):
    Trainer().run(
        ("after_evaluation", 8_520_000_000, 2),
        ("after_training", 9_120_000_000, 2),
        ("after_evaluation", 10_230_000_000, 18),
    )
    first, second, _, fourth = logged.messages
    assert first == (
        "checkpoint baseline: 4.230 GB, baseline, VMS 12.450 GB, TradingEnvironment 2, DDPGAgent 16"
    )
    assert second.startswith("checkpoint after_evaluation: 8.520 GB, +4.290 GB since baseline, VMS ")
    assert fourth == (
        "checkpoint after_evaluation: 10.230 GB, +1.110 GB since after_training, "
        "+1.710 GB since the last after_evaluation, +6.000 GB since the first, "
        "VMS 12.450 GB, TradingEnvironment 18, DDPGAgent 17"
    )


def test_growth_since_a_label_is_data_and_words():
    checkpoints = Trainer().run(("Debug checkpoint 1", 8e9, 2), ("Debug checkpoint 2", 9e9, 18))
    growth = checkpoints.growth_since("Debug checkpoint 1")
    assert growth.bytes == 1_000_000_000
    assert growth.objects == {"TradingEnvironment": 16, "DDPGAgent": 0}
    assert "TradingEnvironment   2 -> 18 (+16)" in str(growth)
    assert "(+4.770 GB, +112.8%)" in str(checkpoints.growth_since())


def test_a_long_run_keeps_the_first_and_the_newest():
    kept = Trainer().run(*[("step", 5e9, 2)] * 3000).all()
    assert (kept[0].label, len(kept)) == ("baseline", 1001)


def test_a_fast_loop_is_not_logged_at_each_turn(logged):
    checkpoints = Trainer().checkpoints
    for _ in range(100):
        checkpoints.take("step")
    assert len(logged.messages) == 1
