"""Secrets and control characters, looked for in everything that is said; and malformed answers."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
import time
from pathlib import Path

import httpx

from heapwatch.runtime.plain_text import plain
from tests.alerting.stage import Stage
from tests.attacks.programs import printed, real_trainer
from tests.attacks.record import Exchange, attack
from tests.exporters.cli.test_wrong_answers import EXPLANATIONS
from tests.exporters.cli.wrong_answers import answering

# The program composes its secrets as it runs: what stands in its source is none.
HOLDING = """
    WORD = "".join(reversed("nietsneknarf"))

    class Held:
        def __repr__(self):
            return WORD

    def fail(*_):
        raise ValueError(f"no such user: {WORD}@example.com")

    import threading
    held = Held()
    held.users = {f"{WORD}@example.com": [], f"postgres://user:{WORD}@db": []}
    threading.Thread(target=time.sleep, args=(3600,), name=WORD, daemon=True).start()
    watch.entities("food", fail)
    watch.on_cleanup(fail)
    print(watch.port, flush=True)
    while True:
        for kept in held.users.values():
            kept.append((Held(), WORD + str(len(kept)), bytearray(20_000)))
        watch.step()
        time.sleep(0.01)
"""
WORD = "".join(reversed("nietsneknarf"))
PAGES = ("/explain", "/metrics", "/performance_status", "/healthz", "/")


@attack("secrets of a program as keys, values, errors and reprs", quick=False)
def held_secrets(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("trainer")
    with real_trainer(folder, HOLDING) as trainer:
        exchange.sent("secrets of the program that grow under keys and as values")
        until = time.monotonic() + 120
        found: list[dict[str, object]] = []
        while time.monotonic() < until and not found:
            found = httpx.get(f"{trainer.url}/explain", timeout=15).json()["findings"]
            time.sleep(1)
        answer = trainer.cleanup({"timeout_seconds": 20})
        said = {page: httpx.get(f"{trainer.url}{page}", timeout=15).text for page in PAGES}
        said["heapwatch explain"] = printed(folder, "explain", trainer.url)[1]
        said["heapwatch monitor"] = printed(folder, "monitor", "--count", 1, trainer.url)[1]
    said |= {"/force_cleanup": answer.text, "log": trainer.log.read_text()}
    exchange.back(f"paths: {', '.join(str(one['path']) for one in found)}")
    exchange.back(f"errors of the cleanup: {answer.json()['errors']}")
    assert found
    assert "raised at trainer.py" in said["log"]
    for where, text in said.items():
        assert text, where
        assert WORD not in text, where
        assert "example.com" not in text, where


TEXT = "\x1b]0;owned\x07\x9b2J\x7f\n\u202e\u2066\u200b[bold][link=http://evil.example]x[/link]"


@attack("control characters, bidi marks and markup in everything that a trainer sends", quick=False)
def terminal(stage: Stage, exchange: Exchange) -> None:
    import json

    site = {"file": TEXT, "line": 1, "function": TEXT}
    finding = {
        "kind": "container", "path": TEXT, "type": TEXT, "items": 1, "bytes": 1, "items_per_minute": 1,
        "bytes_per_minute": 1, "share": 1, "site": site, "holders": [TEXT], "remedy": TEXT, "is_leak": True,
    }  # fmt: skip
    explanation = {
        "verdict": "leak", "detail": TEXT, "seconds": 1, "growth_bytes_per_minute": 1, "explained_share": 1,
        "findings": [finding, finding],
    }  # fmt: skip
    label = TEXT.replace("\n", "\\n")
    metrics = (
        f'trainer_process_resident_memory_bytes{{role="trainer"}} 1e6\ntrainer_info{{trainer="{label}"}} 1\n'
        f'trainer_entities{{type="{label}"}} 9\ntrainer_growing_path_bytes{{path="{label}"}} 9\n'
    )
    folder = stage.folder("terminal")
    recorded = folder / "run.jsonl"
    points = [{"time": at, "event": "sample", "resident_bytes": 1e6, "sizes": {TEXT: at}} for at in (1, 2)]
    lines = [{"heapwatch": 1, "trainer": TEXT}, *points, {"explanation": explanation}]
    recorded.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers = {"/explain": json.dumps(explanation).encode(), "/metrics": metrics.encode()}
    with answering(answers) as server:
        commands = [("explain", server.url), ("explain", "--json", server.url), ("explain", recorded)]
        commands += [("monitor", "--count", 1, server.url), ("doctor", server.url)]
        commands += [("report", recorded, "--format", kind) for kind in ("text", "markdown", "json")]
        for command in commands:
            _, output = printed(folder, *command)
            exchange.sent(f"heapwatch {command[0]} of names with {plain(TEXT)}")
            exchange.back(output.splitlines()[0])
            assert all(line.isprintable() for line in output.split("\n")), command


@attack("explanations of wrong types, 10**400, NaN, deep, endless and slowly sent")
def malformed(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("malformed")
    for name, answer in EXPLANATIONS.items():
        with answering({"/explain": answer}) as server:
            code, output = printed(folder, "explain", server.url)
        exchange.sent(f"{name}: {answer[:60].decode('latin-1')}")
        exchange.back(f"exit code {code}: {output.strip()}")
        assert code == 3
        assert len(output.splitlines()) == 1
    with answering({}, drip=0.2) as server:
        began = time.monotonic()
        code, _ = printed(folder, "explain", server.url)
    exchange.sent("a byte every 0.2 s")
    exchange.back(f"exit code {code} after {time.monotonic() - began:.0f} s")
    assert code == 3


BOMBS = {
    "samples": b'{"time":1,"event":"sample","resident_bytes":1}\n',
    "one line of zeros": b"0" * 1000,
    "lines that are not JSON": b"x\n",
}


@attack("recordings of less than a megabyte that unpack to 300 MB", quick=False)
def recordings(stage: Stage, exchange: Exchange) -> None:
    folder = stage.folder("recordings")
    for name, line in BOMBS.items():
        path = folder / "bomb.jsonl.gz"
        _pack(path, line, 300)
        command = [sys.executable, "-m", "heapwatch", "report", str(path)]
        limited = "import resource, sys, os; resource.setrlimit(resource.RLIMIT_AS, (2 * 10**9,) * 2); "
        limited += "os.execv(sys.argv[1], sys.argv[1:])"
        done = subprocess.run(
            [sys.executable, "-c", limited, *command], capture_output=True, text=True, timeout=1800
        )
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        exchange.sent(f"{path.stat().st_size:,} bytes that unpack to 300 MB: {name}")
        exchange.back(f"exit code {done.returncode}, {most / 1e6:.0f} MB at most: {done.stderr.strip()}")
        assert done.returncode in (0, 3)
        assert "left out" in done.stdout + done.stderr
        assert "Traceback" not in done.stderr


def _pack(path: Path, line: bytes, megabytes: int) -> None:
    with gzip.open(path, "wb", compresslevel=9) as file:
        chunk = line * (10**6 // len(line))
        for _ in range(megabytes):
            file.write(chunk)
