"""Many alerts: 10 000 in a minute, and 1 000 a second for half a minute with every answer timed."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import Receiver, Trainer, wait_for


def _load(
    receiver: Receiver, trainers: list[Trainer], *, rate: int, seconds: int, alerts: int
) -> dict[str, float]:
    options = f"--rate {rate} --seconds {seconds} --alerts {alerts} --trainers".split()
    instances = [trainer.instance for trainer in trainers]
    command = [sys.executable, "-m", "tests.alerting.load", receiver.url, *options, *instances]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds * 4 + 60)
    assert result.returncode == 0, result.stderr[-2000:]
    figures: dict[str, float] = json.loads(result.stdout)
    return figures


def _drained(receiver: Receiver, outcome: Outcome, figures: dict[str, float]) -> None:
    """Every accepted alert has a row, and each row a decision."""
    with outcome.recovery():
        wait_for(
            lambda: receiver.metric("heapwatch_receiver_queue_length") == 0, "every alert is decided", 60
        )
    outcome.lost += int(figures["alerts"] - receiver.metric("heapwatch_receiver_ledger_rows"))


@fault("10 000 alerts in one minute")
def many(stage: Stage, outcome: Outcome) -> None:
    receiver, trainers = stage.receiver().start(), [stage.trainer() for _ in range(5)]
    figures = _load(receiver, trainers, rate=167, seconds=60, alerts=1)
    _drained(receiver, outcome, figures)
    for trainer in trainers:
        outcome.count(trainer)
    outcome.note = f"{figures['accepted']} accepted, p99 {figures['p99_ms']} ms"


def sustained(alerts: int) -> None:
    @fault(f"1 000 alerts/s for 30 s, {alerts} a request")
    def test(stage: Stage, outcome: Outcome) -> None:
        receiver, trainers = stage.receiver().start(), [stage.trainer() for _ in range(5)]
        figures = _load(receiver, trainers, rate=1000, seconds=30, alerts=alerts)
        _drained(receiver, outcome, figures)
        for trainer in trainers:
            outcome.count(trainer)
        outcome.note = (
            f"{figures['alerts_per_second']} alerts/s, p50 {figures['p50_ms']} ms, p99 {figures['p99_ms']} ms"
        )
        if figures["p99_ms"] >= 100 or figures["accepted"] < figures["alerts"]:
            outcome.note = f"FAILED {outcome.note}"


sustained(alerts=1)
sustained(alerts=20)
