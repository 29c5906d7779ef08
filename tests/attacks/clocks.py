"""The wall clock of a trainer is set while it runs. That of the receiver: tests/alerting/faults/clocks.py."""

from __future__ import annotations

import os
import time
import uuid

import httpx

from heapwatch.http import signing
from tests.alerting.harness import TOKEN
from tests.alerting.stage import Stage
from tests.attacks.programs import RealTrainer, real_trainer
from tests.attacks.record import Exchange, attack

SHIFTED = """
import os, time
_file, _time, _time_ns = os.environ["SHIFT"], time.time, time.time_ns
def _shift():
    with open(_file) as file:
        return int(file.read())
time.time = lambda: _time() + _shift()
time.time_ns = lambda: _time_ns() + _shift() * 10**9
"""
YEARS = 10 * 365 * 86400


def _signed(trainer: RealTrainer) -> httpx.Response:
    url = f"{trainer.url}/force_cleanup"
    asked = {"action": "regular", "request_id": uuid.uuid4().hex}
    body, headers = signing.signed_json(TOKEN, url, asked)
    return httpx.post(url, content=body, headers=headers, timeout=15)


@attack("the clock of a trainer jumps ten years ahead and back while it runs", quick=False)
def jumps(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("trainer")
    shift = folder / "shift"
    shift.write_text("0")
    (folder / "sitecustomize.py").write_text(SHIFTED)
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    with real_trainer(folder, PYTHONPATH=path, SHIFT=str(shift)) as trainer:
        targets = sorted((folder / "targets").glob("*.json"))
        for what, seconds, code in (
            ("ten years ahead", YEARS, 401),
            ("back to now", 0, 200),
            ("ten years back", -YEARS, 401),
            ("to now", 0, 200),
        ):
            shift.write_text(str(seconds))
            time.sleep(5)
            answer = _signed(trainer)
            reported = httpx.get(f"{trainer.url}/explain", timeout=15)
            exchange.sent(f"the clock is set {what}, and a cleanup is asked for by a clock that is right")
            exchange.back(
                f"cleanup: {answer.status_code}; training goes on; verdict: {reported.json()['verdict']}"
            )
            assert trainer.makes_progress()
            assert answer.status_code in (code, 200 if code == 202 else code), answer.text
            assert reported.json()["verdict"] != "leak"
            assert sorted((folder / "targets").glob("*.json")) == targets
