"""The tests themselves: a name is a sentence that can be read, and what several files share has one place."""

from __future__ import annotations

import ast

from tests.architecture.sources import tree
from tests.support.repository import REPOSITORY

FILES = sorted((REPOSITORY / "tests").rglob("test_*.py"))
LONGEST_NAME = 80


def test_no_name_of_a_test_is_longer_than_a_sentence() -> None:
    tests = (node.name for file in FILES for node in ast.walk(tree(file)) if isinstance(node, ast.FunctionDef))
    assert [name for name in tests if name.startswith("test_") and len(name) > LONGEST_NAME] == []
