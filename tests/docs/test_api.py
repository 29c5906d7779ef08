"""Every public name of the library is in an example of docs/api.md, which `test_code_blocks.py` runs."""

import ast

import heapwatch
from tests.support.commands import BLOCK, ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def test_each_public_member_of_a_watch_has_an_example():
    used = {
        node.attr
        for block in BLOCK.findall(PAGE)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute)
    }
    members = {name for name in dir(heapwatch.Watch) if not name.startswith("_")}
    assert members - used == set()


def test_each_public_type_is_in_the_reference():
    listed = {line.rpartition(".")[2] for line in PAGE.splitlines() if line.startswith("::: heapwatch.")}
    assert listed == set(heapwatch.__all__)
