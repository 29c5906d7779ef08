"""`%load_ext heapwatch`: the magics `%heapwatch` and `%%heapwatch`.

`%%heapwatch` is removed before IPython reads the cell, so the cell runs as usual, with `await` and its own
line numbers. Nothing runs between two snapshots. Loading a second time has no effect.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from types import ModuleType, NoneType
from typing import Any

from heapwatch import lifecycle
from heapwatch.explain.comparison import Growing
from heapwatch.explain.findings import headline
from heapwatch.explain.statements import statements_in
from heapwatch.measure.introspection.exclusive_reads import has_lock
from heapwatch.measure.process.memory import memory_limit
from heapwatch.notebook.snapshots import LEAST_BYTES, Holder, Notebook, Snapshot, largest
from heapwatch.runtime.failures import raised
from heapwatch.text.numbers import size, size_change
from heapwatch.text.terminal import plain

_MAGIC = "%%heapwatch"
_MOST_SHOWN = 8
_LEAST_KEPT = 1e6
_LEAST_REST = 10e6
_NAMES = re.compile(r"[^\W\d]\w*")

_loaded: list[Extension] = []


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with an `InteractiveShell`, and take the first snapshot.

    Raises:
        RuntimeError: this Python runs without its global lock, so objects cannot be read safely.

    """
    if not has_lock():
        raise RuntimeError("heapwatch cannot search for what grows: this Python runs without its global lock")
    unload_ipython_extension(shell)
    extension = Extension(shell)
    extension.register()
    _loaded.append(extension)


def unload_ipython_extension(_shell: Any) -> None:
    """Remove the magics."""
    while _loaded:
        _loaded.pop().unregister()


class Extension:
    """The magics in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._notebook = Notebook(shell)
        self._since = self._notebook.snapshot()
        self._before: Snapshot | None = None

    def register(self) -> None:
        """Register the magics and hooks."""
        self._shell.register_magic_function(self.magic, "line", "heapwatch")
        self._shell.input_transformers_cleanup.append(without_magic)
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def unregister(self) -> None:
        """Remove the magics and hooks."""
        self._shell.magics_manager.magics["line"].pop("heapwatch", None)
        self._shell.input_transformers_cleanup.remove(without_magic)
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)

    def magic(self, line: str = "") -> None:
        """Show what has grown since the last `%heapwatch`, what holds most, and what IPython keeps.

        As the first line of a cell, `%%heapwatch` shows what the cell leaves behind.
        """
        if line:
            self._show(f"%heapwatch takes no arguments: {line!r} is ignored")
        self._tried(self._show_all)

    def _show_all(self) -> None:
        before, now = self._since, self._notebook.snapshot()
        grown = self._notebook.grown(before, now)
        self._since = now
        change = size_change(now.resident - before.resident)
        about = f"Memory use is {size(now.resident)} of {size(memory_limit())}"
        watched = [f"{watch.name}: {headline(watch.exporter.explanation())}" for watch in lifecycle.running()]
        rest = _rest(grown, now.resident - before.resident)
        kept_holders = [
            one for one in now.holders.values() if one.remedy is not None and one.bytes >= _LEAST_KEPT
        ]
        self._show(
            text_of(
                f"{about}, {change} since the last %heapwatch.",
                [(one, self._function_line(one)) for one in grown[:_MOST_SHOWN]],
                largest(now, _MOST_SHOWN),
                kept_holders,
                [*_unmeasured(now), *rest, *watched],
            )
        )

    def before_cell(self, info: Any) -> None:
        """Snapshot before a cell that begins with the magic."""
        self._before = None
        first, _, options = info.raw_cell.lstrip().partition("\n")[0].strip().partition(" ")
        if first == _MAGIC:
            if options:
                self._show(f"{_MAGIC} takes no arguments: {options.strip()!r} is ignored")
            self._before = self._tried(self._notebook.snapshot)

    def after_cell(self, result: Any) -> None:
        """Show what that cell has left behind."""
        before, self._before = self._before, None
        if before is not None:
            self._tried(lambda: self._show(self._left_behind(before, result)))

    def _left_behind(self, before: Snapshot, result: Any) -> str:
        now = self._notebook.snapshot()
        grown = self._notebook.grown(before, now)
        source = self._shell.transform_cell(result.info.raw_cell)
        cell = f"In[{result.execution_count}]" if result.execution_count else "cell"
        rows = [(one, self._function_line(one) or self._cell_line(one, source, cell)) for one in grown]
        change = now.resident - before.resident
        notes = [*_unmeasured(now), *_rest(grown, change)]
        what = "leaves behind:" if grown else f"leaves no path that holds {size(LEAST_BYTES)} more."
        about = f"{cell} {what} Memory use {size_change(change)}."
        return text_of(about, rows[:_MOST_SHOWN], notes=notes)

    def _function_line(self, growing: Growing) -> str | None:
        """The line of a function as a person finds it: of a cell by its number, of a file by its name."""
        if growing.site is None:
            return None
        named = getattr(self._shell.compile, "format_code_name", None)
        cell = named(growing.site.file) if named is not None else None
        file = cell[1] if cell else growing.site.file.replace("\\", "/").rpartition("/")[2]
        return f"{file}:{growing.site.line}"

    def _cell_line(self, growing: Growing, source: str, cell: str) -> str | None:
        variable = self._shell.user_ns.get(growing.name.partition(".")[0].partition("[")[0])
        line = None if isinstance(variable, (ModuleType, NoneType)) else _line_in(source, growing.name)
        return None if line is None else f"{cell}:{line}"

    def _show(self, text: str) -> None:
        # published, not returned: a result would be kept in `Out`
        self._shell.display_pub.publish({"text/plain": text})

    def _tried(self, work: Any) -> Any:
        """The result of `work`; if it fails, the cell continues."""
        try:
            return work()
        except Exception as error:
            self._show(f"heapwatch could not look: {raised(error)}")
            return None


def without_magic(lines: list[str]) -> list[str]:
    """The lines of a cell, with a comment in place of the magic so that the others keep their numbers."""
    if lines and lines[0].split()[:1] == [_MAGIC]:
        return ["# heapwatch\n", *lines[1:]]
    return lines


def _unmeasured(snapshot: Snapshot) -> Sequence[str]:
    return [f"Not measured: {', '.join(snapshot.unmeasured)}."] if snapshot.unmeasured else []


def _rest(grown: Sequence[Growing], change: int) -> Sequence[str]:
    """What is said of resident bytes that what has grown does not measure."""
    rest = change - sum(one.bytes or 0.0 for one in grown)
    if rest < _LEAST_REST:
        return []
    graphs = [f"`{one.name}`" for one in grown if one.graph]
    if graphs:
        cause = f"probably the autograd graphs that the tensors in {' and '.join(graphs)} keep."
    else:
        cause = "loaded libraries, memory of C code, or freed memory that the allocator keeps."
    return [f"{size(rest)} more is resident than that: {cause}"]


def text_of(
    headline: str,
    grown: Sequence[tuple[Growing, str | None]],
    most: Sequence[Holder] = (),
    kept: Sequence[Holder] = (),
    notes: Sequence[str] = (),
) -> str:
    """What a magic has found: what has grown, with its line in words, what holds most, what IPython keeps."""
    lines = [headline]
    lines += [f"  {one.text(line=line)}" for one, line in grown]
    if most:
        lines.append("holds most:")
        lines += [f"   {size(one.bytes):<8} {one.name} ({one.type})" for one in most]
    lines += [_kept_line(one) for one in kept]
    return "\n".join(map(plain, [*lines, *notes]))


def _kept_line(holder: Holder) -> str:
    return f"{holder.name} keeps {size(holder.bytes)}: {holder.remedy}"


def _line_in(source: str, path: str) -> int | None:
    """The only line of a cell's code that adds to a path, else that binds its variable, else that uses it."""
    names = _NAMES.findall(path)
    if not names:
        return None
    try:
        tree = ast.parse(source)
        code = compile(source, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
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
