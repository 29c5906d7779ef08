"""The line of a cell that fills a path, as `In[12]:3`."""

from __future__ import annotations

import ast
import re
from typing import Any

from heapwatch.explain.source.sites import Site
from heapwatch.explain.source.statements import statements_in

_NAMES = re.compile(r"[^\W\d]\w*")
_TYPED = "<cell>"


def line_in(source: str, path: str) -> int | None:
    """The only line of a cell's code that adds to a path, else that binds its variable, else that uses it."""
    names = _NAMES.findall(path)
    if not names:
        return None
    try:
        tree = ast.parse(source)
        code = compile(source, _TYPED, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except (SyntaxError, ValueError):
        return None
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == names[0]]
    bound = {node.lineno for node in used if isinstance(node.ctx, ast.Store)}
    acts = statements_in(tree.body, code).acts
    grown = {
        line for name, _, deed, line in acts if name == names[-1] and deed in ("grows", "stores", "changes")
    }
    for lines in (grown, bound, {node.lineno for node in used}):
        if lines:
            return lines.pop() if len(lines) == 1 else None
    return None


def shown(shell: Any, site: Site) -> str:
    """A line of a function as a person finds it: of a cell by its number, of a file by its name."""
    named = getattr(shell.compile, "format_code_name", None)
    cell = named(site.file) if named is not None else None
    file = cell[1] if cell else site.file.replace("\\", "/").rpartition("/")[2]
    return f"{file}:{site.line}"
