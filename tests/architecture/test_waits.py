"""Nothing waits without an end: each call that can block has a deadline, or stands below with its reason."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import tree

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "exporters/heapwatch",
    "alerting/heapwatch_receiver",
    "stack/heapwatch_stack",
    "dashboards/heapwatch_viewer",
)
# By what is called, how many arguments given by position, or which by name, set a deadline: `wait(5)`,
# `acquire(blocking=False)`. `"".join(words)` is no wait, `thread.join()` is one.
DEADLINES: dict[str, tuple[int, tuple[str, ...]]] = {
    "acquire": (1, ("timeout", "blocking")),
    "join": (1, ("timeout",)),
    "wait": (1, ("timeout",)),
    "get": (1, ("timeout", "block")),
    "result": (1, ("timeout",)),
    "communicate": (2, ("timeout",)),
    "urlopen": (3, ("timeout",)),
    "create_connection": (2, ("timeout",)),
    "HTTPConnection": (3, ("timeout",)),
    "select": (4, ("timeout",)),
    "run": (99, ("timeout",)),
    "call": (99, ("timeout",)),
    "check_call": (99, ("timeout",)),
    "check_output": (99, ("timeout",)),
    "waitpid": (99, ()),
}
# Only as functions of these modules: other objects have methods of the same names.
MODULES = {
    "select": "select",
    "run": "subprocess",
    "call": "subprocess",
    "check_call": "subprocess",
    "check_output": "subprocess",
    "waitpid": "os",
}
# A call that may wait for ever, and why it must or cannot. The file, what is called, and how often.
ALLOWED: dict[tuple[str, str, int], str] = {
    ("alerting/heapwatch_receiver/follow_up.py", "process.wait", 2): (
        "awaited within wait_for, and after a kill of the whole session"
    ),
    ("alerting/heapwatch_receiver/worker.py", "self._wake.wait", 1): "awaited within wait_for",
    ("exporters/heapwatch/entering/entered_process.py", "tracer.submit(deliver).result", 1): (
        "all that this thread waits for has a deadline"
    ),
    ("exporters/heapwatch/entering/ptrace.py", "os.waitpid", 1): "WNOHANG, within a deadline",
    ("stack/heapwatch_stack/guard.py", "program.wait", 1): "a daemon thread waits for the program's end",
    ("stack/heapwatch_stack/native.py", "subprocess.run", 1): "`logs --follow` is `tail -F`, until Ctrl-C",
}
# `with lock` waits as long as another thread holds it. These are held for a few operations on memory alone.
LOCKS = {
    (
        "alerting/heapwatch_receiver/store.py",
        "self._lock",
    ): "a transaction, which ends with the disk's answer",
    ("exporters/heapwatch/http/status.py", "self._observing"): "one observation, among threads of requests",
    ("exporters/heapwatch/integrations/session.py", "_lock"): "the start or stop of a watch, with deadlines",
    ("exporters/heapwatch/runtime/cleanup.py", "self._lock"): "the queue of tickets",
}


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                yield path.relative_to(ROOT).as_posix(), tree(path)


def waits(parsed: ast.AST) -> Iterator[str]:
    """What is called without a deadline."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Call) and (name := _name(node.func)) in DEADLINES:
            positional, named = DEADLINES[name]
            whole = ast.unparse(node.func)
            module = MODULES.get(name)
            if module is not None and whole != f"{module}.{name}":
                continue
            if module is None and isinstance(node.func, ast.Name) and name in ("get", "wait", "join"):
                continue
            given = {keyword.arg for keyword in node.keywords}
            if len(node.args) < positional and not given & {*named, None}:
                yield whole
        elif isinstance(node, ast.Call) and _name(node.func) in ("flock", "lockf"):
            how = ast.unparse(node.args[1])
            if "LOCK_NB" not in how and "LOCK_UN" not in how:
                yield ast.unparse(node.func)


def locks(module: ast.AST) -> Iterator[str]:
    """What `with` waits for and is called a lock."""
    for node in ast.walk(module):
        if isinstance(node, ast.With):
            for item in node.items:
                name = ast.unparse(item.context_expr)
                if name.lower().endswith(
                    ("lock", "_condition", "_semaphore", "observing", "encoding", "collecting")
                ):
                    yield name


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


@pytest.mark.slow
def test_every_wait_has_a_deadline() -> None:
    found: dict[tuple[str, str], int] = {}
    for file, module in sources():
        for what in waits(module):
            found[file, what] = found.get((file, what), 0) + 1
    assert {(*place, count) for place, count in found.items()} == set(ALLOWED)


def test_every_lock_that_is_waited_for_is_held_for_a_moment() -> None:
    assert {(file, lock) for file, module in sources() for lock in locks(module)} == set(LOCKS)
