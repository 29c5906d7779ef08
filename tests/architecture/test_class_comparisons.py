"""Classes of the program's objects are told apart by identity: a metaclass may define equality and hash.

`type(obj) in (int, float)` and a dictionary of classes run the code of a metaclass in a thread of ours.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.support.sources import library

HASHED = ("get", "add", "setdefault", "index", "count", "discard", "remove", "pop")
# Of constants of the compiler, nodes of a syntax tree, and keys that were found to be texts and numbers.
KNOWN = {"explain/statements.py:_conditions", "explain/statements.py:_number"}


def comparisons(module: ast.Module) -> Iterator[str]:
    """Functions that compare or hash the class of an object."""
    for function in ast.walk(module):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        nodes = list(ast.walk(function))
        classes = {
            target.id
            for node in nodes
            if isinstance(node, ast.Assign) and _is_class(node.value, set())
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        if any(_is_class(operand, classes) for node in nodes for operand in _compared(node)):
            yield function.name


def _compared(node: ast.AST) -> list[ast.expr]:
    """What is compared by equality or hashed there."""
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.slice]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in HASHED:
        return node.args[:1]
    if isinstance(node, ast.SetComp):
        return [node.elt]
    if isinstance(node, ast.DictComp):
        return [node.key]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("set", "frozenset", "Counter"):
        return [ast.Call(one.args[0], [one.args[1]], []) for one in node.args if _maps(one)]
    return []


def _maps(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "map" and len(node.args) > 1


def _is_class(node: ast.expr, classes: set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in classes
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "type" and len(node.args) == 1


def test_classes_of_the_program_are_neither_compared_nor_hashed() -> None:
    modules = library("explain", "measure", "collectors", "notebook", "testing", "runtime")
    found = {f"{file}:{name}" for file, module in modules.items() for name in comparisons(module)}
    assert found == KNOWN
