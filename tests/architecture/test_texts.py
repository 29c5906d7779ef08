"""Bytes become text in `heapwatch.text.numbers` alone, so that one size reads the same everywhere.

The viewer of dashboards has Grafana's units, as data that the browser reads, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.support.sources import MODULES, tree

HOME = "heapwatch.text.numbers"
_UNIT = r"\s?[kKMGT]?i?B\b"
_AFTER_A_VALUE = re.compile(_UNIT)
_TEMPLATE = re.compile(rf"(?:%[-+ 0-9.]*[dfgs]|\{{[^{{}}]*\}}){_UNIT}")
_ALONE = re.compile(r"\s?[kKMGT]i?B")
_POWERS = (1e6, 1e9, 1e12, 1024, 1024**2, 1024**3)


def home_made(module: ast.AST) -> Iterator[ast.AST]:
    """Where a number of bytes is written with its unit, or divided within a text."""
    options = {
        keyword.value
        for node in ast.walk(module)
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "metavar"
    }
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and _AFTER_A_VALUE.match(_text(text)):
                    yield node
        elif isinstance(node, ast.FormattedValue):
            if any(map(_divides, ast.walk(node.value))):
                yield node
        elif node not in options and (_ALONE.fullmatch(_text(node)) or _TEMPLATE.search(_text(node))):
            yield node


def _text(node: ast.AST) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _divides(node: ast.AST) -> bool:
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv))):
        return False
    by = node.right
    if isinstance(by, ast.BinOp) and isinstance(by.op, ast.Pow):
        return True
    return isinstance(by, ast.Constant) and by.value in _POWERS


def test_bytes_become_text_in_one_place() -> None:
    found = [
        f"{module}:{getattr(node, 'lineno', 0)}: {ast.unparse(node)}"
        for module in sorted(MODULES.keys() - {HOME})
        for node in home_made(tree(MODULES[module]))
    ]
    assert found == [], f"call size() of {HOME}"


@pytest.mark.parametrize(
    "code",
    [
        'f"{nbytes / 1000:.1f} kB"',
        'f"{x:.0f}MB freed"',
        'f"{x} KB"',
        'f"{nbytes} B"',
        'f"{nbytes / 2**20:.1f}"',
        'f"{nbytes / 1e6:.2f}"',
        '"%.1f MiB" % value',
        '"{:.1f} GB".format(value)',
        'f"{value}" + " GB"',
        'units = ("B", "KB", "MB")',
    ],
)
def test_a_home_made_text_is_found(code: str) -> None:
    assert list(home_made(ast.parse(code)))


@pytest.mark.parametrize(
    "code",
    [
        'option(metavar="MB", help="size in MB, such as 5 MB")',
        'f"{size(nbytes)} of memory"',
        'f"{count} bodies, B of them"',
        'f"{seconds / 60:.0f} min"',
        'rb"(\\d+) kB$"',
    ],
)
def test_plain_words_and_other_numbers_are_not(code: str) -> None:
    assert not list(home_made(ast.parse(code)))
