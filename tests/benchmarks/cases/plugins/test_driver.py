"""The driver hands control back after each round, whatever sleeps, and tells how a script ended."""

import asyncio
import sys
import threading
import time

import pytest

from benchmarks.cases.plugins import driver
from benchmarks.cases.plugins.driver import Script, ScriptEnded
from tests.e2e.running import wait_for

NAME = "driven_script"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Make a script of a text; what it replaces is put back."""
    monkeypatch.setattr(time, "sleep", time.sleep)
    monkeypatch.setattr(asyncio, "run", asyncio.run)
    monkeypatch.setattr(driver, "SETTLE_SECONDS", 0.2)

    def make(text, patience=60):
        # On a busy machine a thread that is not blocked may take long to come back.
        monkeypatch.setattr(driver, "START_SECONDS", patience)
        monkeypatch.setattr(driver, "BLOCKED_SECONDS", patience)
        path = tmp_path / f"{NAME}.py"
        path.write_text(text)
        return Script(path)

    yield make
    sys.modules.pop(NAME, None)


def seen(name):
    return getattr(sys.modules[NAME], name)


def test_a_round_is_a_time_of_the_script_and_takes_none_and_a_library_sleeps_as_always(script):
    running = script("import time\nsteps = 0\nwhile True:\n    steps += 1\n    time.sleep(100)\n")
    began = time.monotonic()
    for steps in (3, 6):
        running.advance(250)
        assert seen("steps") == steps
    slept = time.monotonic()
    time.sleep(0.05)
    assert time.monotonic() - slept >= 0.05
    assert slept - began < 60


def test_the_script_pauses_between_two_rounds(script):
    running = script("import time\nsteps = 0\nwhile True:\n    steps += 1\n    time.sleep(1e-6)\n")
    running.advance(1e-3)
    steps = seen("steps")
    assert steps >= 1000
    threading.Event().wait(0.05)
    assert seen("steps") == steps


THREADS = """
import queue, threading, time
made, used, produced = queue.Queue(), 0, 0
def produce():
    global produced
    while True:
        made.put(0)
        produced += 1
        time.sleep(1)
def use():
    global used
    used += made.get() == 0
    time.sleep(2)
threading.Thread(target=produce, daemon=True).start()
while True:
    use()
"""
SLOW_TO_START = """
import threading, time
ahead = 0
def count():
    global ahead
    while True:
        time.sleep(1)
        ahead += 1
threading.Thread(target=count, daemon=True).start()
threading.Event().wait(0.3)
before = ahead
while True:
    time.sleep(1)
"""
WAITS_FOR_ANOTHER = """
import queue, threading, time
made, used = queue.Queue(maxsize=3), 0
def produce():
    while True:
        made.put(0)
        time.sleep(0.1)
threading.Thread(target=produce, daemon=True).start()
while True:
    time.sleep(1)
    used += made.get() == 0
"""
EVENT_LOOP = """
import asyncio
steps = 0
async def work():
    await asyncio.sleep(30)
async def train():
    global steps
    while True:
        await asyncio.gather(work(), work())
        await asyncio.sleep(10)
        steps += 1
asyncio.run(train())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "patience", "seconds", "bounds"),
    [
        (THREADS, 60, 100, {"used": (49, 51), "produced": (96, 104)}),
        (SLOW_TO_START, 60, 100, {"before": (0, 0), "ahead": (99, 100)}),
        (WAITS_FOR_ANOTHER, 0.5, 10.5, {"used": (10, 10)}),
        (EVENT_LOOP, 60, 401, {"steps": (10, 10)}),
    ],
    ids=["one clock for all threads", "none runs ahead", "one waits for another", "an event loop"],
)
def test_what_sleeps_is_on_the_clock(script, text, patience, seconds, bounds):
    script(text, patience).advance(seconds)
    for name, (low, high) in bounds.items():
        assert low <= seen(name) <= high, name


def test_a_script_that_never_sleeps_itself_goes_at_the_pace_of_its_thread(script):
    running = script(
        """
import queue, threading, time
made, used = queue.Queue(), 0
def produce():
    while True:
        made.put(0)
        time.sleep(1)
threading.Thread(target=produce, daemon=True).start()
while True:
    made.get()
    used += 1
""",
        patience=0.5,
    )
    running.advance(20)
    wait_for("the script takes what is there", lambda: seen("used") >= 20)
    assert seen("used") <= 21


def test_a_script_that_ends_or_raises_has_no_next_round(script):
    running = script("import time\ntime.sleep(3)\nraise LookupError('no data')\n")
    running.advance(2)
    for _ in range(2):
        with pytest.raises(ScriptEnded, match="has ended") as raised:
            running.advance(2)
        assert isinstance(raised.value.__cause__, LookupError)
