"""Wall clock jumps of ten years, while the receiver runs and while it is down."""

from __future__ import annotations

import time

from tests.alerting.faults.stage import Outcome, Stage, fault
from tests.alerting.harness import alert

YEARS = 10 * 365 * 86400
COOLDOWN = 10


def jump(name: str, first: int, then: int, *, restart: bool) -> None:
    @fault(f"clock jumps {name}")
    def test(stage: Stage, outcome: Outcome) -> None:
        offset = stage.folder("clock") / "offset"
        offset.write_text(str(first))
        hook = {"HEAPWATCH_RECEIVER_TEST_WALL_OFFSET_FILE": str(offset)}
        receiver = stage.receiver(regular_cooldown=COOLDOWN, emergency_cooldown=COOLDOWN).start(hook)
        trainer = stage.trainer("useless")
        receiver.post(alert(trainer.instance))
        receiver.decided(1)
        later = offset.with_suffix(".new")
        later.write_text(str(then))
        later.replace(offset)
        if restart:
            receiver.program.stop()
            receiver.start(hook)
        # The cooldown is not cut short; a downtime of ten years, as it seems, ends it.
        seemingly_later = restart and then > first
        if not seemingly_later:
            receiver.post(alert(trainer.instance))
            assert receiver.decided(2)[0]["reason"] == "duplicate"
        with outcome.recovery():
            deadline = time.monotonic() + 1.5 * COOLDOWN  # nor is it longer
            while len(trainer.done) < 2 and time.monotonic() < deadline:
                receiver.post(alert(trainer.instance))
                time.sleep(0.2)
        receiver.decided(3 if not seemingly_later else 2)
        outcome.count(trainer, expected=2)


jump("back 10 years while it runs", YEARS, 0, restart=False)
jump("ahead 10 years while it runs", 0, YEARS, restart=False)
jump("back 10 years while it is down", YEARS, 0, restart=True)
jump("ahead 10 years while it is down", 0, YEARS, restart=True)
