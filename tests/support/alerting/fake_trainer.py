"""The HTTP side of a trainer that is over its memory limit, which can be told to misbehave."""

from __future__ import annotations

import json
import threading
import time
from contextlib import ExitStack
from typing import Any

from tests.support.http_server import Request, serving
from tests.support.waiting import wait_for

FULL, CLEANED = 2e9, 0.5e9
LONGEST_SECONDS = 25  # until a cleanup may begin: less than the receiver waits
DELAYS = {"hang": 3600, "slow": 1.5}
# Status and body of the answers that are no cleanup, by mode.
REPLIES = {
    "error": (500, b'{"error": "broken"}'),
    "forbidden": (403, b'{"error": "no token configured"}'),
    "garbage": (200, b"\xff\xfe<html>not json"),
    "huge": (200, b'{"status": "' + b"x" * (8 << 20) + b'"}'),
    "redirect": (302, b""),
    "limited": (429, b'{"error": "too often"}'),
}


class Trainer:
    """`mode` says how it answers; `done` lists the cleanups that it did, one for each request id."""

    def __init__(self, mode: str = "ok") -> None:
        self.mode = mode
        self.done: list[dict[str, Any]] = []
        self.may_clean_up = threading.Event()
        self.may_clean_up.set()
        self._memory = FULL
        self._answers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._served = ExitStack()
        self.port = self._served.enter_context(serving(self._respond)).port
        self.instance = f"127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._served.close()

    def wait_until_done(self, what: str = "the cleanup", seconds: float = 60) -> None:
        wait_for(lambda: self.done, what, seconds)

    def _respond(self, request: Request) -> tuple[int, bytes]:
        if request.method == "GET":
            return 200, (
                f'trainer_process_resident_memory_bytes{{role="trainer"}} {self._memory}\n'
                'trainer_bodies{type="dynamic"} 300\n'
            ).encode()
        mode, asked = self.mode, json.loads(request.body)
        self.may_clean_up.wait(LONGEST_SECONDS)
        time.sleep(DELAYS.get(mode, 0))
        if mode in REPLIES:
            return REPLIES[mode]
        if mode == "pending":
            return 202, json.dumps({"status": "pending", "request_id": asked["request_id"]}).encode()
        return 200, json.dumps(self._cleanup(asked, useful=mode != "useless")).encode()

    def _cleanup(self, asked: dict[str, str], *, useful: bool) -> dict[str, Any]:
        with self._lock:
            if asked["request_id"] not in self._answers:
                self.done.append(asked)
                before, self._memory = self._memory, CLEANED if useful else self._memory
                self._answers[asked["request_id"]] = {
                    "status": "done",
                    "request_id": asked["request_id"],
                    "before": {"resident_memory_bytes": before, "bodies": 900},
                    "after": {"resident_memory_bytes": self._memory, "bodies": 300},
                    "freed": {"resident_memory_bytes": before - self._memory},
                    "removed": {"bodies": 600, "food_sources": 50},
                    "duration_seconds": 0.01,
                }
            return self._answers[asked["request_id"]]
