"""The tests themselves: the name of each is a sentence that can be read."""

from __future__ import annotations

import ast

from tests.architecture.sources import tree
from tests.support.repository import REPOSITORY

FILES = sorted((REPOSITORY / "tests").rglob("test_*.py"))
LONGEST_NAME = 80


def test_no_name_of_a_test_is_longer_than_a_sentence() -> None:
    functions = (node for file in FILES for node in tree(file).body if isinstance(node, ast.FunctionDef))
    names = [function.name for function in functions if function.name.startswith("test_")]
    assert [name for name in names if len(name) > LONGEST_NAME] == []
