import logging
import time

import numpy as np
import pytest

import heapwatch
from heapwatch.collectors.declared import InstanceSampler
from heapwatch.measure.objects.instances import Census
from heapwatch.recording.checkpoints import Checkpoints, Memory


class Trainer:
    """A process with so much memory and so many objects."""

    def __init__(self, *gpu):
        self.resident = 4_230_000_000
        self.objects = {"TradingEnvironment": 2, "DDPGAgent": 16}
        self.now = 1000.0
        self.counted_at = {}
        self.checkpoints = Checkpoints(
            lambda: Memory(self.resident, 12_450_000_000, *gpu),
            lambda moment: Census(self.objects, self.counted_at),
            lambda: self.now,
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


def test_a_line_reports_the_change_since_three_earlier_points(logged):
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


def test_the_age_of_a_count_is_said_where_it_is_older_than_the_checkpoint(logged):
    trainer = Trainer()
    trainer.counted_at = {"TradingEnvironment": 1000.0, "DDPGAgent": 1000.1}
    first = trainer.checkpoints.take("baseline")
    trainer.now = 1060.0
    trainer.counted_at = {"TradingEnvironment": 999.9, "DDPGAgent": 1060.0}
    second = trainer.checkpoints.take("after_evaluation")
    assert (dict(first.ages), dict(second.ages)) == ({}, {"TradingEnvironment": pytest.approx(60.1)})
    assert logged.messages[0].endswith("TradingEnvironment 2, DDPGAgent 16")
    assert logged.messages[1].endswith("TradingEnvironment 2 counted 60 s earlier, DDPGAgent 16")
    lines = str(trainer.checkpoints.growth_since()).splitlines()
    assert lines[3:] == [
        "  TradingEnvironment   2 -> 2 (+0), counted 60 s earlier",
        "  DDPGAgent            16 -> 16 (+0)",
    ]


class Environment:
    pass


def test_a_checkpoint_counts_what_is_alive_at_that_moment():
    """Also where the budget has no time for samples, and in any thread."""
    with heapwatch.Watch(budget=1e-9) as watch:
        watch.expect(Environment, 2)
        watch.objects(np.ndarray)
        kept = [Environment(), Environment()]
        watch.checkpoint("before")
        for alive in (2, 3, 50, 2):
            kept[:] = [Environment() for _ in range(alive)]
            point = watch.checkpoint("after")
            assert point.objects["Environment"] == alive
            assert "Environment" not in point.ages
            assert watch.growth_since("before").objects["Environment"] == alive - 2


@pytest.mark.parametrize(
    ("tracked", "untracked", "left_out"),
    [
        (0.19, 0.0, set()),
        (0.21, 0.0, {"Environment"}),
        (0.0, 0.19, set()),
        (0.0, 0.21, {"ndarray"}),
        (0.1, 0.09, set()),
        (0.1, 0.11, {"ndarray"}),
    ],
)
def test_counts_that_would_take_more_than_200_ms_together_are_left_out(
    monkeypatch, tracked, untracked, left_out
):
    takes = {"objects": tracked, "untracked_objects": untracked}
    monkeypatch.setattr(InstanceSampler, "expected_seconds", lambda one: takes[one.name])
    with heapwatch.Watch(budget=1e-9) as watch:
        watch.objects(Environment, np.ndarray)
        point = watch.exporter.safe_point
        point.sample_now(*(task.sampler for task in point.tasks))  # none is due by the clock for hours
        time.sleep(0.01)
        taken = watch.checkpoint("after")
    assert set(taken.objects) == {"Environment", "ndarray"}
    assert set(taken.ages) == left_out


def test_more_than_expected_are_said_at_once(caplog):
    with heapwatch.Watch(budget=1e-9) as watch:
        watch.expect(Environment, 2)
        for alive, said in ((2, 0), (3, 1), (3, 0), (5, 0), (6, 1), (2, 0), (3, 1)):
            caplog.clear()
            kept = [Environment() for _ in range(alive)]
            watch.checkpoint("after")
            assert len(kept) == alive
            assert caplog.messages == [f"Environment: {alive} are alive, 2 expected"] * said
