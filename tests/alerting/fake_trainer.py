"""The HTTP side of a trainer as a process of its own, which can be told to misbehave.

    python fake_trainer.py FOLDER TOKEN PORT

The file `mode` says how. Each cleanup that is really done goes to the file `journal`, synced, so that a test
counts them after any crash.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType

from heapwatch.http.signing import SCHEME, NotSigned, Verifier

FULL, CLEANED = 2e9, 0.5e9
DELAYS = {"hang": 3600, "slow": 1.5}
# Status, body and headers of the answers that are no cleanup, by mode.
REPLIES = {
    "error": (500, b'{"error": "broken"}'),
    "garbage": (200, b"\xff\xfe<html>not json"),
    "redirect": (302, b"", {"Location": "/elsewhere"}),
}


class Trainer:
    def __init__(self, journal: Path, mode: Path) -> None:
        self.journal, self.mode_file = journal, mode
        self.started = time.time()
        self.memory = FULL
        self.answers: dict[str, dict[str, object]] = {}
        self.lock = threading.Lock()

    @property
    def mode(self) -> str:
        return self.mode_file.read_text().strip()

    def cleanup(self, request: dict[str, str], useful: bool) -> dict[str, object]:
        """Idempotent by request id, as the real endpoint is."""
        with self.lock:
            identity = request["request_id"]
            if identity in self.answers:
                return self.answers[identity]
            with self.journal.open("a") as journal:
                journal.write(
                    json.dumps({"request_id": identity, "action": request["action"], "pid": os.getpid()})
                    + "\n"
                )
                journal.flush()
                os.fsync(journal.fileno())
            before = self.memory
            if useful:
                self.memory = CLEANED
            self.answers[identity] = {
                "status": "done",
                "request_id": identity,
                "action": request["action"],
                "trigger": "alert",
                "before": {"resident_memory_bytes": before, "bodies": 900, "entities": {"food_sources": 70}},
                "after": {
                    "resident_memory_bytes": self.memory,
                    "bodies": 300,
                    "entities": {"food_sources": 20},
                },
                "freed": {"resident_memory_bytes": before - self.memory},
                "removed": {"bodies": 600, "food_sources": 50},
                "duration_seconds": 0.01,
                "errors": [],
            }
            return self.answers[identity]


class Handler(BaseHTTPRequestHandler):
    trainer: Trainer
    token: str
    verifier: Verifier

    def do_GET(self) -> None:
        trainer = self.trainer
        self.reply(
            200,
            f"process_start_time_seconds {trainer.started}\n"
            f'trainer_process_resident_memory_bytes{{role="trainer"}} {trainer.memory}\n'
            'trainer_bodies{type="dynamic"} 300\n'.encode(),
            {"Content-Type": "text/plain; version=0.0.4"},
        )

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        try:
            self.check_signature(body)
        except NotSigned as problem:
            return self.reply(401, json.dumps({"error": str(problem)}).encode())
        mode = self.trainer.mode
        time.sleep(DELAYS.get(mode, 0))
        if mode in REPLIES:
            return self.reply(*REPLIES[mode])
        if mode == "pending":
            pending = {"status": "pending", "request_id": request["request_id"]}
            return self.reply(202, json.dumps(pending).encode())
        if mode == "die-before":
            os._exit(1)
        done = self.trainer.cleanup(request, useful=mode != "useless")
        return self.reply(200, json.dumps(done).encode())

    def check_signature(self, body: bytes) -> None:
        """Whoever sends the secret itself is refused: nothing of ours may."""
        scheme, _, credentials = self.headers["Authorization"].partition(" ")
        if scheme != SCHEME:
            raise NotSigned(f"the scheme is {scheme}")
        self.verifier.check(
            credentials,
            self.token,
            method="POST",
            authority=self.headers["Host"],
            path=self.path,
            body=body,
        )

    def reply(self, status: int, body: bytes, headers: Mapping[str, str] = MappingProxyType({})) -> None:
        self.send_response(status)
        usual = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass  # the receiver was killed while it waited


if __name__ == "__main__":
    folder, token, port = sys.argv[1:]
    own = {
        "trainer": Trainer(Path(folder) / "journal", Path(folder) / "mode"),
        "token": token,
        "verifier": Verifier(),
    }
    Server(("127.0.0.1", int(port)), type("Handler", (Handler,), own)).serve_forever()
