"""The modules of all packages, each parsed once for all of these tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from tests.support.repository import REPOSITORY, SOURCES

PACKAGES = [
    package
    for folder in SOURCES
    for package in (REPOSITORY / folder).iterdir()
    if (package / "__init__.py").exists()
]
MODULES = {
    ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES
    for path in package.rglob("*.py")
}


@cache
def tree(path: Path) -> ast.Module:
    """The module's syntax tree, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))
