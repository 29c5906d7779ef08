"""The tests themselves: the name of each is a sentence that can be read."""

from __future__ import annotations

import ast

from tests.support.repository import REPOSITORY
from tests.support.sources import tree

FILES = sorted((REPOSITORY / "tests").rglob("test_*.py"))
LONGEST_NAME = 80


def test_no_name_of_a_test_is_longer_than_a_sentence() -> None:
    functions = (node for file in FILES for node in tree(file).body if isinstance(node, ast.FunctionDef))
    names = [function.name for function in functions if function.name.startswith("test_")]
    assert [name for name in names if len(name) > LONGEST_NAME] == []


def test_no_test_imports_another() -> None:
    imported = {
        (file.name, node.module)
        for file in FILES
        for node in tree(file).body
        if isinstance(node, ast.ImportFrom) and ".test_" in (node.module or "")
    }
    assert imported == set(), "what several tests use is in tests/support"
