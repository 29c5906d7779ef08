"""Audit hooks are noticed; they cannot be removed, so each case has a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="not told before 3.11")
SUBJECT = "heapwatch.measure.introspection.audit"
TUPLES = """
import sys, threading, time
sys.setswitchinterval(5e-6)
sys.addaudithook(lambda event, arguments: sum(range(300)))
from heapwatch.measure.objects.tracked import tracked_objects, tracked_slices
kept = [(at, []) for at in range(2000)]
ended = []

def look():
    while not ended:
        tracked_slices([0], sys.maxsize)
        tracked_objects({id(list)})

def item(at):
    return [at]

thread = threading.Thread(target=look)
thread.start()
end = time.monotonic() + 5
try:
    while time.monotonic() < end:
        tuple(item(at) for at in range(12))
finally:
    ended.append(1)
    thread.join(60)
print("no tuple was disturbed")
"""


def told(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    return done.stdout.strip() or done.stderr


@pytest.mark.parametrize(
    ("hook", "expected"), [("", "False"), ("sys.addaudithook(lambda *args: None)", "True")]
)
def test_a_hook_is_noticed(hook: str, expected: str) -> None:
    ask = f"from {SUBJECT} import may_have_audit_hooks; print(may_have_audit_hooks())"
    assert told(f"import sys\n{hook}\n{ask}") == expected


def test_nothing_is_tried_where_the_stack_may_grow_long() -> None:
    ask = f"from {SUBJECT} import may_have_audit_hooks; print(may_have_audit_hooks())"
    assert told(f"import sys\nsys.setrecursionlimit(10**6)\n{ask}") == "True"


def test_tuples_that_the_program_fills_are_not_referred_to_while_a_hook_runs() -> None:
    assert told(TUPLES) == "no tuple was disturbed"
