"""What each plugin prints of a leak becomes findings, and its test file is one that pytest can read."""

import pytest

from benchmarks.cases.plugins.plugin import PLUGINS, leak_hunter, memray, ours

OURS = """
something grows with every one of 24 rounds:
  logger.stats["visits"] (list of tuple): +8 kB and +50 items a round, filled at /a/train.py:14 in log.
  itertools.cycle < generator Long (train.py:25) (list of ndarray): +2.7 MB and +14 items a round.
  train.Viewer (instances): +768 kB and +1 items a round, held by method close < nothing.
  memory outside Python objects (malloc): +5.4 MB a round.
  freed memory that malloc keeps (allocator): +4.2 MB a round.
  child processes (workers): +52 MB and +1 items a round, filled at /a/train.py:29 in f. Suggested: x.
  uncollected cycles of dict, ndarray (garbage): +3 MB and +18 items a round.
----------------------------- Captured stdout call -----------------------------
episode 3 (best): 12 a round
"""
LEAK_HUNTER = """
E           leak_hunter.growth.LeakError: Objects accumulating across calls (2 windows x 20 calls):
E             list                  +55.5 per call  (window 1: +1103, window 2: +1110)
E             train.AgentCollector  +2 per call  (window 1: +40, window 2: +40)
E           Allocation sites still holding memory from the last 20 calls:
E             train.py:44  +195.44 KiB per call  (+1000 blocks)
E           Next, see what keeps them alive:
"""
MEMRAY = """
Test was allowed to leak 1.0MiB per location but at least one location leaked more
List of leaked allocations:
    - 900.0KiB allocated here:
        make:/a/train.py:7
        <module>:/a/train.py:9
    - 3.6MiB allocated here:
        PyArray_NewFromDescr:<unknown>:0
        run_episode:/a/train.py:28
        <module>:/a/train.py:35
    - 2.1MiB allocated here:
        start_thread:<unknown>:0
=========================== short test summary info ============================
"""


def test_each_kind_of_finding_of_ours_is_read():
    container, unreached, instances, native, allocator, workers, garbage = ours(OURS)
    assert (container.path, container.type) == ('logger.stats["visits"]', "list of tuple")
    assert container.sites == (("/a/train.py", 14),)
    assert unreached.path == "itertools.cycle < generator Long (train.py:25)"
    assert (instances.path, instances.type, instances.sites) == (None, "train.Viewer", ())
    assert [one.kind for one in (native, allocator, workers)] == ["native", "allocator", "worker"]
    assert workers.sites == (("/a/train.py", 29),)
    assert garbage.type == "uncollected cycles of dict, ndarray"


def test_types_and_lines_of_leak_hunter_go_together():
    first, second = leak_hunter(LEAK_HUNTER)
    assert (first.type, first.sites) == ("list", (("train.py", 44),))
    assert (second.type, second.sites) == ("train.AgentCollector", ())


def test_memray_reports_the_line_of_the_script_of_the_largest_stack_first():
    assert [one.sites for one in memray(MEMRAY)] == [(("/a/train.py", 28),), (), (("/a/train.py", 7),)]


@pytest.mark.parametrize("plugin", PLUGINS.values(), ids=lambda plugin: plugin.title)
def test_its_test_is_a_test(plugin):
    compile(plugin.text, "test_train.py", "exec")
    assert "def test_" in plugin.text
    assert plugin.findings("1 passed in 2 s") == ()
