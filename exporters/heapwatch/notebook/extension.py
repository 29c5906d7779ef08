"""`%load_ext heapwatch`: the magics `%heapwatch` and `%%heapwatch`.

`%%heapwatch` is taken off before IPython reads the cell, so that the cell runs as any other, with `await` and
its own line numbers. Nothing runs between two looks: there is no thread, and loading twice is loading once.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, NoneType
from typing import Any

from heapwatch import lifecycle
from heapwatch.explain.findings import headline, size_text
from heapwatch.measure.introspection.alone import has_lock
from heapwatch.measure.process.memory import memory_limit
from heapwatch.notebook.holders import Holder
from heapwatch.notebook.lines import line_in, shown
from heapwatch.notebook.looks import LEAST_BYTES, Grown, Look, Looker, most
from heapwatch.notebook.shown import Shown
from heapwatch.runtime.failures import raised

_MAGIC = "%%heapwatch"
_MOST_SHOWN = 8
_LEAST_KEPT = 1e6
_LEAST_REST = 10e6

_loaded: list[Extension] = []


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with an `InteractiveShell`, and take the first look.

    Raises:
        RuntimeError: this Python runs without its global lock, so objects cannot be read safely.

    """
    if not has_lock():
        raise RuntimeError("heapwatch does not look for what grows: this Python runs without its global lock")
    unload_ipython_extension(shell)
    extension = Extension(shell)
    extension.register()
    _loaded.append(extension)


def unload_ipython_extension(_shell: Any) -> None:
    """Take the magics out again."""
    while _loaded:
        _loaded.pop().unregister()


class Extension:
    """The magics in one shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._looker = Looker(shell)
        self._since = self._looker.look()
        self._before: Look | None = None

    def register(self) -> None:
        """Begin."""
        self._shell.register_magic_function(self.magic, "line", "heapwatch")
        self._shell.input_transformers_cleanup.append(without_magic)
        self._shell.events.register("pre_run_cell", self.before_cell)
        self._shell.events.register("post_run_cell", self.after_cell)

    def unregister(self) -> None:
        """End."""
        self._shell.magics_manager.magics["line"].pop("heapwatch", None)
        self._shell.input_transformers_cleanup.remove(without_magic)
        self._shell.events.unregister("pre_run_cell", self.before_cell)
        self._shell.events.unregister("post_run_cell", self.after_cell)

    def magic(self, _line: str = "") -> None:
        """Show what has grown since the last `%heapwatch`, what holds most, and what IPython keeps.

        As the first line of a cell, `%%heapwatch` shows what the cell leaves behind.
        """
        self._tried(self._show_all)

    def _show_all(self) -> None:
        since, now = self._since, self._looker.look()
        grown = self._looker.grown(since, now)
        self._since = now
        change = now.resident - since.resident
        about = f"Memory use is {size_text(now.resident)} of {size_text(memory_limit())}"
        watched = [f"{watch.name}: {headline(watch.exporter.explanation())}" for watch in lifecycle.running()]
        self._show(
            Shown(
                f"{about}, {change / 1e6:+,.1f} MB since the last look.",
                [(one, self._function_line(one)) for one in grown[:_MOST_SHOWN]],
                most(now, _MOST_SHOWN),
                _kept(now),
                [*_unmeasured(now), *watched],
            )
        )

    def before_cell(self, info: Any) -> None:
        """Look before a cell that begins with the magic."""
        self._before = None
        if has_magic(info.raw_cell):
            self._before = self._tried(self._looker.look)

    def after_cell(self, result: Any) -> None:
        """Show what that cell has left behind."""
        before, self._before = self._before, None
        if before is not None:
            self._tried(lambda: self._show(self._left_behind(before, result)))

    def _left_behind(self, before: Look, result: Any) -> Shown:
        now = self._looker.look()
        grown = self._looker.grown(before, now)
        source = self._shell.transform_cell(result.info.raw_cell)
        cell = f"In[{result.execution_count}]" if result.execution_count else "cell"
        rows = [(one, self._function_line(one) or self._cell_line(one, source, cell)) for one in grown]
        change = now.resident - before.resident
        rest = change - sum(one.bytes for one in grown)
        notes = list(_unmeasured(now))
        if rest >= _LEAST_REST:
            notes.append(
                f"{size_text(rest)} more is resident than that: loaded libraries, memory of C code, or freed "
                "memory that the allocator keeps."
            )
        what = "leaves behind:" if grown else f"leaves no path that holds {size_text(LEAST_BYTES)} more."
        return Shown(f"{cell} {what} Memory use {change / 1e6:+,.1f} MB.", rows[:_MOST_SHOWN], notes=notes)

    def _function_line(self, one: Grown) -> str | None:
        return None if one.site is None else shown(self._shell, one.site)

    def _cell_line(self, one: Grown, source: str, cell: str) -> str | None:
        variable = self._shell.user_ns.get(one.path.partition(".")[0].partition("[")[0])
        line = None if isinstance(variable, (ModuleType, NoneType)) else line_in(source, one.path)
        return None if line is None else f"{cell}:{line}"

    def _show(self, found: Shown) -> None:
        # published, not returned: a result would be kept in `Out`
        self._shell.display_pub.publish({"text/plain": str(found), "text/html": found.as_html()})

    def _tried(self, work: Any) -> Any:
        """What `work` returns; the cell goes on where it fails."""
        try:
            return work()
        except Exception as error:
            self._shell.display_pub.publish({"text/plain": f"heapwatch could not look: {raised(error)}"})
            return None


def without_magic(lines: list[str]) -> list[str]:
    """The lines of a cell, with a comment in place of the magic so that the others keep their numbers."""
    if lines and lines[0].split()[:1] == [_MAGIC]:
        return ["# heapwatch\n", *lines[1:]]
    return lines


def has_magic(cell: str) -> bool:
    """Whether a cell begins with the magic."""
    return cell.split(maxsplit=1)[:1] == [_MAGIC]


def _kept(look: Look) -> Sequence[Holder]:
    return [one for one in look.holders.values() if one.remedy is not None and one.bytes >= _LEAST_KEPT]


def _unmeasured(look: Look) -> Sequence[str]:
    return [f"Not measured: {', '.join(look.unmeasured)}."] if look.unmeasured else []
