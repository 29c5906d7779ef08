"""A container of the program is read in one call into C, since another thread may change it between two.

The frames of all threads are listed and dropped in one call, too: `measure.introspection.frames`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.sources import library

# Methods of built-in types are called unbound on objects of the program alone.
TYPES = ("dict", "set", "frozenset", "list", "tuple", "deque")
ITERATE = ("items", "keys", "values", "__iter__", "__reversed__")
WHOLE = ("list", "tuple", "set", "frozenset", "dict", "len")
# Where the iterator is used by the next instruction, and an error is answered by another attempt.
REPEATED = {"measure/sizing/sampling.py:_pick"}


def iterations(module: ast.Module) -> Iterator[str]:
    """Functions that make an iterator over a container and use it in another instruction."""
    for function in module.body:
        parents = {child: node for node in ast.walk(function) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _iterates(node.func):
                used = parents[node]
                whole = isinstance(used, ast.Call) and used.args == [node] and ast.unparse(used.func) in WHOLE
                if not whole:
                    yield getattr(function, "name", "")


def _iterates(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id in TYPES
        and function.attr in ITERATE
    )


def test_no_iterator_over_a_container_of_the_program_outlives_a_call() -> None:
    found = {f"{file}:{name}" for file, module in library().items() for name in iterations(module)}
    assert found == REPEATED


def test_no_dict_of_frames_outlives_a_call() -> None:
    uses = [
        (file, ast.unparse(call))
        for file, module in library().items()
        for call in ast.walk(module)
        if isinstance(call, ast.Call) and "_current_frames" in ast.unparse(call)
    ]
    assert [use for use in uses if use[1].startswith("iter(")] == [
        ("measure/introspection/frames.py", "iter(sys._current_frames, None)")
    ]
    assert {file for file, _ in uses} == {"measure/introspection/frames.py"}
    assert not any("_current_frames()" in use for _, use in uses)
