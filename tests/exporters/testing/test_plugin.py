"""The plugin as a project uses it: tests of its own in a folder of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest_plugins = ["pytester"]
# hundreds of rounds, on a machine that does other things as well
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRAINER = """
import pytest

class Trainer:
    def __init__(self):
        self.history = []
    def update(self):
        self.history.append(bytearray(20_000))

class Policy:
    latest = []
"""
USES = """
@pytest.fixture
def trainer():
    return Trainer()

@pytest.mark.no_leak
def test_update(trainer):
    trainer.update()

def test_unit_of_work(no_leak):
    trainer = Trainer()
    no_leak(trainer.update, rounds=12)

@pytest.mark.parametrize("allow", ["*.history", ["other", 100_000]])
def test_allowed(no_leak, allow):
    trainer = Trainer()
    no_leak(trainer.update, rounds=9, allow=allow)

@pytest.mark.no_leak
def test_failing_by_itself():
    assert 1 == 2

@pytest.mark.no_leak(rounds=3)
def test_too_short():
    pass

@pytest.mark.no_leak(rounds=0)
def test_of_no_rounds():
    pass

@pytest.mark.no_leak(round=9)
def test_of_an_unknown_argument():
    pass

def test_of_something_that_cannot_be_allowed(no_leak):
    no_leak(int, allow={"trainer.history": 9})
"""
MARKED = """
import pytest
pytestmark = pytest.mark.no_leak(rounds=12)  # half as many as usual, in half of the time
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the plugin, whether its entry point is installed in this environment or not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # what pytest itself holds is not collected and counted in each of hundreds of rounds
    pytester.makeconftest("import gc\ngc.freeze()")
    pytester.makeini("[pytest]\naddopts = -p heapwatch.testing.plugin --strict-markers")
    return pytester


def ran(project: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    project.makepyfile(text)
    return project.runpytest_subprocess(*options)


def test_each_use_of_the_plugin_fails_or_passes_with_its_reason(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    done = ran(project, TRAINER + USES)
    done.assert_outcomes(failed=7, passed=2)  # what is allowed passes: paths, bytes a round
    done.stdout.fnmatch_lines(
        [
            "*leak: something grows with every one of 24 rounds:*",
            "*trainer.history (list of bytearray): +2?.? kB and +1 items*collections.deque(maxlen=...)*",
            "*something grows with every one of 12 rounds:*",
            "*trainer.history *",
            "*assert 1 == 2*",
            "*cannot be judged in 3 rounds*",
            "*cannot be judged in 0 rounds*",
            "no_leak() got an unexpected keyword argument 'round'; allowed: no_leak(rounds=24, allow=())",
            "no_leak: allow={'trainer.history': 9}: a path or a number of bytes a round is allowed",
        ]
    )
    file = f"{project.path.name.rstrip('0123456789')}.py"
    text = done.stdout.str()
    assert f", filled at {file}:7 in " in text  # from the project's folder
    assert "Traceback" not in text
    assert "During handling" not in text
    title = "Heapwatch%3A leak in test_update"
    assert f"\n::error file={file},line=7,title={title}::trainer.history (list of bytearray): +" in text
    summary = (project.path / "summary.md").read_text()
    assert summary.startswith("- **leak** in `test_update`: trainer.history (list of bytearray): +")


HEALTHY = """
import collections, functools
QUEUE = collections.deque(maxlen=15)
STEPS, MEMO, KEPT, PAGES = [], {}, [], []

@functools.lru_cache(maxsize=16)
def cached(key):
    return bytearray(20_000)

def test_nothing_is_kept():
    for _ in range(3):
        Trainer().update()

def test_all_that_has_an_end():
    QUEUE.append(bytearray(20_000))
    STEPS.extend([0.5] * 20)  # a log of numbers
    cached(len(STEPS) % 800)
    MEMO.setdefault(len(STEPS) % 80, bytearray(20_000))
    KEPT.append(bytearray(20_000))
    del KEPT[:-5]
    PAGES.append(bytearray(9000))
    if len(PAGES) > 4:
        PAGES.clear()
"""
FILLING = """
class Transition:
    def __init__(self):
        self.pixels = bytearray(120_000)

REPLAY = collections.deque(maxlen=1000)

class Recent:
    def __init__(self):
        self.returns, self.lengths, self.actions, self.rewards = [], [], [], []
    def add(self):
        self.returns.append(bytearray(20_000))
        if len(self.returns) > 1000:
            self.returns.pop(0)
        self.lengths.append(bytearray(20_000))
        if len(self.lengths) > 1000:
            self.lengths.pop(0)
        self.actions.append(bytearray(20_000))
        if len(self.actions) > 1000:
            self.actions.pop(0)
        self.rewards.append(bytearray(20_000))
        if len(self.rewards) > 1000:
            self.rewards.pop(0)

RECENT = Recent()

def test_a_buffer_with_a_bound_that_fills_all_the_time():
    REPLAY.append(Transition())

def test_several_lists_that_the_code_cuts():
    RECENT.add()
"""
LEAKING = """
import ctypes, itertools, threading, weakref
LIBC = ctypes.CDLL(None)
POLICY = Policy()

def closure():
    kept = []
    def remember(item):
        kept.append(item)
    return remember

remember = closure()

class Node:
    def __init__(self, tail):
        self.tail = tail

def chain(length):
    node = None
    for _ in range(length):
        node = Node(node)
    return node

FIGURES = []

def test_what_takes_long_to_measure():
    FIGURES.append(chain(3000))

def test_a_class_attribute_a_closure_and_a_registry_of_finalizers():
    Policy.latest.append(bytearray(20_000))
    remember(bytearray(20_000))
    node = Trainer()
    node.update()
    weakref.finalize(POLICY, print, node)

def test_memory_outside_python():
    LIBC.malloc(300_000)

def batches():
    while True:
        yield [bytearray(5000) for _ in range(4)]

def endless(loader):
    cycles = [itertools.cycle(loader)]
    while True:
        yield next(cycles[0])

GO, DONE = threading.Semaphore(0), threading.Semaphore(0)

def consume():
    for _ in endless(batches()):
        DONE.release()
        GO.acquire()

threading.Thread(target=consume, daemon=True).start()

def test_a_generator_that_keeps_what_it_cycles_through():
    for _ in range(10):
        GO.release()
        DONE.acquire()
"""
NOT_PYTHON = """
import gc, subprocess

@pytest.fixture
def collector_off():
    gc.disable()
    yield
    gc.enable()

def test_cycles_while_the_collector_is_off(collector_off):
    for _ in range(20):
        info = {"observation": bytearray(20_000)}
        info["final_info"] = info

WORKERS = []

def test_processes_that_nobody_ends():
    WORKERS.append(subprocess.Popen(["cat"], stdin=subprocess.PIPE))
"""


def test_what_has_an_end_passes_also_while_it_fills(project: pytest.Pytester) -> None:
    ran(project, MARKED + TRAINER + HEALTHY + FILLING).assert_outcomes(passed=4)


def test_what_has_no_end_fails_and_is_named(project: pytest.Pytester) -> None:
    done = ran(project, MARKED + TRAINER + LEAKING)
    done.assert_outcomes(failed=4)
    named = (
        "Policy.latest (list of",
        "remember",
        "weakref.finalize._registry",
        "memory outside Python",
        "itertools.cycle < list < generator endless",
    )
    for name in named:
        done.stdout.fnmatch_lines([f"*  *{name}*a round*"])
    # On a slow machine it is not weighed to its end, and its type is named with what holds it.
    done.stdout.re_match_lines([r".*FIGURES \(list of Node\): \+.*a round|.*Node .*a round, .*FIGURES"])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads procfs")
def test_what_grows_without_an_object_to_show_it_fails_and_is_named(project: pytest.Pytester) -> None:
    done = ran(project, MARKED + NOT_PYTHON)
    done.stdout.fnmatch_lines(["*uncollected cycles of dict (garbage): +??? kB and +2* items*`gc.enable()`*"])
    done.stdout.fnmatch_lines(["*child processes (workers): * and +1 items a round*"])
    done.assert_outcomes(failed=2)


def test_it_works_under_xdist_and_without(project: pytest.Pytester) -> None:
    test = "def test_it():\n    Policy.latest.append(bytearray(20_000))\n"
    text = f"{TRAINER}\n@pytest.mark.no_leak(rounds=9)\n{test}"
    ran(project, text, "-p", "xdist", "-n", "1").assert_outcomes(failed=1)
    # Without the plugin a marker is unknown, not an error of the plugin's.
    off = project.runpytest_inprocess("-p", "no:heapwatch", "-o", "addopts=")
    off.assert_outcomes(passed=1)


def test_unused_it_loads_nothing_that_judges() -> None:
    script = (
        "import sys, heapwatch; assert 'pytest' not in sys.modules; import heapwatch.testing.plugin;"
        "names = ('heapwatch.', 'prometheus', 'psutil');"
        "print(sorted(name for name in sys.modules if name.startswith(names)))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert loaded.stdout.strip() == "['heapwatch.testing', 'heapwatch.testing.plugin']"
