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


def library(*folders: str) -> dict[str, ast.Module]:
    """The trees of the library's modules by file, such as `explain/sites.py`: of all, or of these folders."""
    package = MODULES["heapwatch"].parent
    files = [path.relative_to(package) for path in sorted(MODULES.values()) if package in path.parents]
    wanted = [file for file in files if not folders or file.parts[0] in folders]
    return {file.as_posix(): tree(package / file) for file in wanted}


@cache
def tree(path: Path) -> ast.Module:
    """The module's syntax tree, which nobody changes."""
    return ast.parse(path.read_text(encoding="utf-8"))
