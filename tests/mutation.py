"""Mutation testing: which changes of a module that decides are not detected by its tests.

`python -m tests.mutation [MODULE ...]` changes one comparison, operator, condition or number at a time.
The tests are collected once. Each change is made in a forked process, in the loaded functions.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

import pytest

ROOT = Path(__file__).parents[1]
# A module and its tests, without those that take too long to be run hundreds of times.
JUDGED_BY = {
    "alerting/heapwatch_receiver/decide.py": ["tests/alerting/receiver/test_decide.py"],
    "exporters/heapwatch/analysis/leak.py": [
        "tests/exporters/analysis/test_leak.py",
    ],
    "exporters/heapwatch/explain/attribution.py": [
        "tests/exporters/explain/test_attribution.py",
        "-k",
        "not levels_off",
    ],
    "exporters/heapwatch/explain/series.py": ["tests/exporters/explain/test_series.py"],
}
QUIET = ["-s", "-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-p", "no:terminal"]
SECONDS = 60  # a mutant that takes longer counts as detected
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, ast.Module]]:
    """Each change of one place, as a line to show, and the changed module."""
    tree = ast.parse(source)
    decorators = {
        part
        for node in ast.walk(tree)
        for decorator in getattr(node, "decorator_list", ())
        for part in ast.walk(decorator)
    }
    for position, node in enumerate(ast.walk(tree)):
        for number in range(0 if node in decorators else _changes(node)):
            changed = copy.deepcopy(tree)
            place = next(found for index, found in enumerate(ast.walk(changed)) if index == position)
            before = ast.unparse(place)
            _change(place, number)
            yield f"{node.lineno}: {before}  ->  {ast.unparse(place)}", changed  # type: ignore[attr-defined]


def _changes(node: ast.AST) -> int:
    if isinstance(node, ast.Compare):
        return len(node.ops)
    if isinstance(node, ast.BoolOp):
        return 1
    if isinstance(node, ast.BinOp):
        return int(type(node.op) in OPPOSITES)
    if isinstance(node, ast.If | ast.IfExp):
        return 1
    return int(isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float))


def _change(node: ast.AST, number: int) -> None:
    if isinstance(node, ast.Compare):
        node.ops[number] = OPPOSITES[type(node.ops[number])]()  # type: ignore[assignment]
    elif isinstance(node, ast.BoolOp | ast.BinOp):
        node.op = OPPOSITES[type(node.op)]()  # type: ignore[assignment]
    elif isinstance(node, ast.If | ast.IfExp):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        ast.fix_missing_locations(node)
    elif isinstance(node, ast.Constant):
        node.value = not node.value if isinstance(node.value, bool) else node.value * 1.25 + 1  # type: ignore[operator]


class Mutants:
    """A pytest plugin that runs what was collected once for each change of a module."""

    def __init__(self, path: Path, jobs: int) -> None:
        self.path = path
        self.changes = list(mutants(path.read_text(encoding="utf-8")))
        self.survivors: list[str] = []
        self.passes_unchanged = False
        self._jobs = jobs

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests unchanged, then with each change."""
        module = next(one for one in list(sys.modules.values()) if _file_of(one) == self.path)
        unchanged = _fork(session, module, ast.parse(self.path.read_text(encoding="utf-8")))
        self.passes_unchanged = bool(session.items) and _passed(os.waitpid(unchanged, 0)[1])
        running: dict[int, str] = {}
        for line, tree in self.changes if self.passes_unchanged else ():
            if len(running) >= self._jobs:
                self._collect(running)
            running[_fork(session, module, tree)] = line
        while running:
            self._collect(running)
        return True

    def _collect(self, running: dict[int, str]) -> None:
        child, status = os.wait()
        line = running.pop(child)
        if _passed(status):
            self.survivors.append(line)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _passed(status: int) -> bool:
    return os.waitstatus_to_exitcode(status) == 0


def _fork(session: pytest.Session, module: ModuleType, tree: ast.Module) -> int:
    """A process that runs the tests with the changed module until one fails; its status is 0 if none does."""
    child = os.fork()
    if child:
        return child
    signal.alarm(SECONDS)
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    try:
        _install(module, tree)
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                break
    except BaseException:  # a module that cannot be loaded counts as detected
        os._exit(1)
    os._exit(int(session.testsfailed > 0))


def _install(module: ModuleType, tree: ast.Module) -> None:
    made = {"__name__": module.__name__, "__package__": module.__package__, "__file__": module.__file__}
    exec(compile(ast.fix_missing_locations(tree), str(module.__file__), "exec"), made)
    for name, value in made.items():
        own = getattr(value, "__module__", None) == module.__name__
        if own and isinstance(value, FunctionType | type):
            _transplant(vars(module)[name], value)
        elif not name.startswith("__"):
            setattr(module, name, value)


def _transplant(old: object, new: object) -> None:
    """Give existing functions the code of the new ones, since other modules may have imported them."""
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        old.__code__, old.__defaults__, old.__kwdefaults__ = (
            new.__code__,
            new.__defaults__,
            new.__kwdefaults__,
        )
    elif isinstance(old, property) and isinstance(new, property):
        _transplant(old.fget, new.fget)
    elif isinstance(old, type) and isinstance(new, type):
        for name, part in vars(new).items():
            _transplant(vars(old).get(name), part)


def main() -> int:
    """Print the survivors of each module; 1 when its tests fail without a change."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=list(JUDGED_BY), help="paths of the modules (all)")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    for name in options.modules:
        print(f"{name}: trying its mutants, which takes minutes", file=sys.stderr, flush=True)
        plugin = Mutants((ROOT / name).resolve(), options.jobs)
        pytest.main([*QUIET, *JUDGED_BY[name]], plugins=[plugin])
        if not plugin.passes_unchanged:
            print(f"{name}: its tests fail without a change")
            return 1
        print(f"{name}: {len(plugin.changes)} mutants, {len(plugin.survivors)} survive", *plugin.survivors,
              sep="\n  ", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
