"""Each attribute of an object of C code that is read has a row in `docs/reads.py`."""

from __future__ import annotations

import ast
import collections
import importlib
from array import array
from collections import defaultdict
from collections.abc import Iterator

import pytest

from docs.reads import READS
from tests.support.sources import MODULES, library

FOLDERS = ("measure", "explain", "collectors", "runtime")
LIBRARIES = (
    ("torch", "Tensor"),
    ("torch", "UntypedStorage"),
    ("numpy", "ndarray"),
    ("pyarrow.lib", "Array"),
    ("pyarrow.lib", "Buffer"),
    ("pyarrow.lib", "ChunkedArray"),
    ("pyarrow.lib", "Table"),
    ("jaxlib._jax", "ArrayImpl"),
)
# Attributes of Python's own containers and texts, which every thread may read.
PLAIN = {
    name
    for kind in (str, bytes, bytearray, list, dict, set, tuple, collections.deque, array, slice)
    for name in dir(kind)
}
# Attributes of this package's own objects, and of the standard library's.
OWN = {
    "collectors.limits": {"max"},
    "explain.candidate": {"floor"},
    "explain.describe": {"floor"},
    "explain.engine": {"log", "set"},
    "explain.statements": {"slice"},
    "explain.tracing": {"filename", "traceback"},
    "explain.written_files": {"offset"},
    "runtime.cleanup": {"set"},
    "runtime.exposition": {"put"},
    "runtime.safe_point": {"set"},
    "measure.gpu": {"devices"},
    "measure.sizing.foreign": {"len", "name"},
    "measure.sizing.tensor_storage": {"address"},
    "measure.sizing.traversal": {"address", "nbytes"},
    "measure.introspection.exclusive_reads": {"offset"},
    "measure.introspection.frames": {"name"},
}


def _known_names() -> set[str]:
    names: set[str] = set()
    for module, name in LIBRARIES:
        try:
            names |= set(dir(getattr(importlib.import_module(module), name)))
        except (ImportError, AttributeError):
            continue
    names |= {name for name in dir(importlib.import_module("torch")._C) if name.startswith("_storage")}
    return {
        name for name in names if not name.startswith("__") or "interface" in name or "flatten" in name
    } - PLAIN


def _attributes(module: ast.AST) -> Iterator[str]:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute):
            of_module = isinstance(node.value, ast.Name) and node.value.id in imported
            if not of_module:
                yield node.attr
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr")
        ):
            yield from (
                part.value
                for part in node.args[1:2]
                if isinstance(part, ast.Constant) and type(part.value) is str
            )


def _made_here(trees: dict[str, ast.AST]) -> set[str]:
    """Names that classes of the package define, and those of its functions."""
    names: set[str] = set()
    for module in trees.values():
        for node in ast.walk(module):
            if isinstance(node, ast.FunctionDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
    return names


def test_each_read_of_an_object_of_c_code_has_a_row_and_each_row_is_read() -> None:
    pytest.importorskip("torch")
    trees = {file.removesuffix(".py").replace("/", "."): module for file, module in library(*FOLDERS).items()}
    known, own = _known_names(), _made_here(trees)
    rows: dict[str, set[str]] = defaultdict(set)
    for row in READS:
        for module in row.modules:
            rows[module] |= set(row.names)
    missing = []
    for module, parsed in trees.items():
        ours = OWN.get(module, set()) | (set() if module.startswith("measure.") and module in rows else own)
        names = {name for name in _attributes(parsed) if name in known}
        missing += [f"{module}: {name}" for name in sorted(names - rows[module] - ours)]
    assert not missing, ", ".join(missing)


def test_each_row_names_modules_that_exist() -> None:
    for row in READS:
        assert all(f"heapwatch.{module}" in MODULES for module in row.modules), row
