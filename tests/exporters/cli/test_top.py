"""`heapwatch top`: its screen in 80 columns, what it prints, and where it reads."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from unittest.mock import Mock

import pytest

import heapwatch
from heapwatch.cli.top_source import (
    Entered,
    Path,
    Served,
    Snapshot,
    _explained,
    _memory,
    memory_text,
    printed,
    snapshot_of,
)
from heapwatch.entering.ptrace import IS_SUPPORTED
from heapwatch.explain.findings import Explanation, Finding
from heapwatch.measure.process.memory import malloc_bytes
from tests.support.entered_programs import CRASHES, ENDING, ENTERED, LEAKING, LEFT, program
from tests.support.waiting import wait_for

enters = pytest.mark.skipif(not IS_SUPPORTED, reason="a process is entered on Linux on x86-64")
HISTORY = Path(
    "agent.history", "list of dict", 3924, 115e6, 173.8e6, "train.py:16", "`deque`", True,
    ("All of it.",),
)  # fmt: skip
REPLAY = Path("agent.replay", "deque of dict", 9_000, 220e6, 12e6)
WEIGHTS = Path("\x1b[2Jweights", "dict", 12, 9e6)
PPO = Snapshot(
    "ppo",
    "127.0.0.1:7777",
    "leak",
    "leak: Memory grows by 180 MB/min.",
    "1 to 3 h",
    {"resident": 169e6, "in use": 148e6, "shared": 17.7e6, "limit": 25e9},
    (HISTORY, REPLAY),
)
WALKER = Snapshot(
    "walker", "127.0.0.1:7778", "healthy", "healthy: Nothing leaks.", "", {"resident": 1e6}, (WEIGHTS,)
)
LOST = Snapshot("127.0.0.1:7779", "127.0.0.1:7779", problem="does not answer")


class Source:
    """Snapshots of a test."""

    def __init__(self, *snapshots):
        self.snapshots = list(snapshots)

    def read(self):
        return self.snapshots


def screens_of(source, *steps, size=(80, 24)):
    """What is on the screen after each step, as lines; a step is keys that are pressed."""
    pytest.importorskip("textual", reason="textual is not installed")
    from heapwatch.cli.top_screen import TopScreen

    async def run():
        app, seen = TopScreen(source, 3600.0), []
        async with app.run_test(size=size) as pilot:
            await app.workers.wait_for_complete()
            for step in steps:
                for key in step:
                    await pilot.press(key)
                    await pilot.pause()
                await pilot.pause()
                seen.append([strip.text for strip in app.screen._compositor.render_strips()])
        return seen

    return asyncio.run(asyncio.wait_for(run(), 60))


def paths_on(lines):
    return [name for line in lines for name in re.findall(r"agent\.\w+|weights", line)]


def test_one_trainer_in_80_columns_and_all_about_a_path():
    lines, opened, closed = screens_of(Source(PPO), (), ("enter",), ("escape",))
    text = "\n".join(lines)
    assert "leak: Memory grows by 180 MB/min." in text
    assert "memory 169 MB of 25 GB: 148 MB in use (17.7 MB shared)" in text
    row = next(line for line in lines if "agent.history" in line)
    assert not any("\u2501" in line or "\u2581" in line for line in lines)  # a bar to scroll with
    assert re.search(r"list of dict +3,924 +115 MB +\+174 MB +train\.py:16", row)
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert "All of it." in "\n".join(opened)
    assert "All of it." not in "\n".join(closed)


def test_names_draw_nothing_themselves_and_a_problem_is_shown():
    (lines,) = screens_of(Source(WALKER), ())
    assert "\\x1b[2Jweights" in "\n".join(lines)
    (lines,) = screens_of(Source(LOST), ())
    assert "does not answer" in "\n".join(lines)


def test_a_key_sorts():
    by_growth, by_bytes = ["agent.history", "agent.replay"], ["agent.replay", "agent.history"]
    screens = screens_of(Source(PPO), (), ("s",), ("s", "s", "s"))
    assert list(map(paths_on, screens)) == [by_growth, by_bytes, by_growth]


@pytest.mark.parametrize(
    ("seen", "code"), [([WALKER, PPO], 2), ([WALKER, LOST], 0), ([LOST], 3), ([PPO, LOST], 2)]
)
def test_the_exit_code_is_that_of_the_worst(seen, code, monkeypatch, run):
    monkeypatch.setattr(Served, "read", lambda _: seen)
    assert run("top", "--once", "127.0.0.1:7777")[0] == code


def test_a_long_path_keeps_its_end():
    long = replace(HISTORY, path="main().algorithm.workers[*].collector.agent.history")
    shown = "\n".join(screens_of(Source(replace(PPO, paths=(long,))), ())[-1])
    assert re.search(r"\.\.\.\S*agent\.history", shown), shown


def test_what_is_printed():
    assert printed([PPO, LOST]) == [
        "ppo (127.0.0.1:7777): leak: Memory grows by 180 MB/min.",
        "  memory: 169 MB of 25 GB: 148 MB in use (17.7 MB shared)",
        "  PATH           TYPE           ITEMS  BYTES   A MINUTE  LINE",
        "  agent.history  list of dict   3,924  115 MB  +174 MB   train.py:16",
        "  agent.replay   deque of dict  9,000  220 MB  +12 MB",
        "127.0.0.1:7779 (127.0.0.1:7779): does not answer",
    ]


def found(kind, held, **more):
    return Finding(kind, "a.b", "list", 1, held, 1.0, 1e6, 0.1, **more)


def memory_with(memory, *findings):
    """Memory by part of a process in which these grow."""
    explanation = Explanation("growing" if findings else "healthy", 60.0, 1e6, 1.0, findings)
    return _explained("ppo", "pid 1", explanation, memory, ()).memory


def test_measured_objects_are_a_part_of_memory_and_each_byte_counts_once():
    findings = (
        found("container", 100),
        found("type", 20),
        found("container", 4, inferred=True),
        found("container", None),
        found("native", 5),
    )
    memory = {"resident": 1000.0}
    assert memory_with(memory, *findings) == {**memory, "in objects that grow": 120}
    assert memory_with(memory) == memory


def test_the_parts_of_memory_are_no_more_than_the_whole():
    # Half of its blocks are not touched, and its workers share all but 8 MB with each other.
    told = {
        "resident_bytes": {"trainer": 336e6, "worker": 1450e6},
        "unique_bytes": {"trainer": 164e6, "worker": 8e6},
        "allocator_bytes": {"used": 400e6, "retained": 130e6},
        "limit_bytes": 25e9,
    }
    parts = _memory({"memory": told})
    assert parts["in use"] + parts["freed but kept"] <= parts["resident"]
    text = memory_text(Snapshot("ppo", "pid 1", memory=parts))
    assert text == (
        "336 MB of 25 GB: 206 MB in use, 130 MB freed but kept (172 MB shared); beside it 8 MB in workers"
    )
    kept = {"resident_bytes": {"trainer": 1e6}, "allocator_bytes": {"retained": 2e6}}
    assert _memory({"memory": kept}) == {"resident": 1e6, "freed but kept": 1e6}
    tensors_on_a_gpu = found("container", 5e9)
    assert memory_with(parts, tensors_on_a_gpu)["in objects that grow"] == 336e6
    on_a_gpu = Snapshot("ppo", "pid 1", memory={"on GPU 0": 2e9})
    assert memory_text(on_a_gpu) == "unknown; beside it 2 GB on GPU 0"


def test_a_trainer_is_read_by_what_it_serves(monkeypatch):
    replay = [bytearray(1000) for _ in range(5)]
    with heapwatch.start("seen", port=0, interval=0.01, budget=0.5) as watch:
        watch.buffer("replay", replay)

        url = watch.server.url.rstrip("/")

        def has_paths():
            watch.step()
            return snapshot_of(url).paths

        wait_for(has_paths)
        seen = snapshot_of(url)
        assert (seen.trainer, seen.verdict, seen.problem) == ("seen", "too early", "")
        assert min(seen.memory["resident"], seen.memory["in use"]) > 1e6
        assert [(one.path, one.type, one.items) for one in seen.paths] == [("replay", "buffer", 5)]
        monkeypatch.setattr("heapwatch.cli.top_source.explanation_of", Mock(side_effect=ValueError("no")))
        assert "invalid response" in snapshot_of(url).problem
    assert "does not answer" in Served(["http://127.0.0.1:9"]).read()[0].problem


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["top"], 64, "the screen needs a terminal; --once prints"),
        (["top", "--once", "127.0.0.1:9"], 3, "does not answer"),
        (["top", "--once", "nobody"], 3, "no trainer is registered as nobody"),
    ],
)
def test_what_cannot_be_shown_is_said(words, code, says, run):
    ended, printed, errors = run(*words)
    assert ended == code
    assert says in printed + errors


@enters
def test_a_process_without_heapwatch_is_entered_and_left(tmp_path, run):
    with program(LEAKING, tmp_path) as process:
        code, printed, _ = run("top", "--json", process.pid)
        assert code == 0
        (seen,) = json.loads(printed)
        assert (seen["address"], seen["verdict"]) == (f"pid {process.pid}", "too early")
        assert seen["memory"]["resident"] > 1e6
        assert process.poll() is None


@pytest.mark.slow
@enters
def test_a_process_that_crashes_is_not_said_to_have_ended(tmp_path, run):
    with program(ENDING.format(seconds=LEFT, end=CRASHES), tmp_path) as process:
        code, printed, errors = run("top", "--once", process.pid)
        assert (code, "too early" in printed) == (4, True)
        assert errors.startswith(f"heapwatch: process {process.pid} (train) was killed by SIGSEGV ")
    with program(ENDING.format(seconds=ENTERED, end=CRASHES), tmp_path) as process:
        code, _, errors = run("top", "--once", process.pid)
        assert (code, f"process {process.pid} (train) was killed by SIGSEGV" in errors) == (4, True)
    with program(LEAKING, tmp_path) as process, Entered(process.pid) as source:
        process.kill()
        process.wait(30)
        wait_for(lambda: source.read()[0].problem == "it was killed by SIGKILL (signal 9)")
    assert source.end.exit_code == 4


@enters
@pytest.mark.skipif(malloc_bytes() == (None, None), reason="this C library has no mallinfo2")
def test_a_process_that_was_entered_reports_what_malloc_has_allocated(tmp_path):
    with program(LEAKING, tmp_path) as process, Entered(process.pid) as source:
        wait_for(lambda: source.read()[0].memory.keys() >= {"in use", "freed but kept"})
        assert source.read()[0].memory["in use"] > 0
