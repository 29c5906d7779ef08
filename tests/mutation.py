"""Mutation testing: which changes of a judging module its tests do not notice.

`python -m tests.mutation [MODULE ...]` changes one comparison, operator, condition or number at a time and
runs the tests of the module, each in a forked process. Tools that rewrite a copy do not follow links.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# A module and its tests; those with promtool take too long to be run a thousand times.
JUDGED_BY = {
    "alerting/receiver/decide.py": ["tests/alerting/receiver/test_decide.py"],
    "exporters/heapwatch/analysis/leak.py": ["tests/exporters/analysis/test_leak.py", "-k", "not rules"],
    "exporters/heapwatch/explain/judge.py": ["tests/exporters/explain/test_judge.py"],
}
QUIET = ["-x", "-q", "-p", "no:cacheprovider"]
SECONDS = 60  # a mutant that takes longer hangs, which is noticed
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def mutants(source: str) -> Iterator[tuple[str, ast.Module]]:
    """Each change of one place, as a line to show, and the changed module."""
    tree = ast.parse(source)
    for position, node in enumerate(ast.walk(tree)):
        for number in range(_changes(node)):
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


def preload(tests: list[str]) -> bool:
    """Whether the tests pass as it is; leaves loaded, for each fork, what does not belong to this tree."""
    passed = pytest.main([*QUIET, *tests]) == 0
    for name, module in list(sys.modules.items()):
        if name.startswith(("heapwatch", "tests", "test_")) or str(
            getattr(module, "__file__", "")
        ).startswith(str(ROOT / "tests")):
            sys.modules.pop(name, None)
    return passed


def survives(path: Path, module: ast.Module, tests: list[str]) -> bool:
    """Whether the tests pass with `module` in the place of the file."""
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        original = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> object:
            if Path(loader.path).resolve() == path:
                return compile(ast.fix_missing_locations(module), str(path), "exec")
            return original(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        os._exit(int(pytest.main([*QUIET, *tests])))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main() -> int:
    """Print the survivors of each module; 1 when its tests fail without a change."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", default=list(JUDGED_BY), help="paths of the modules (all)")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # loading them takes longer than the tests
    for name in options.modules:
        path, tests = (ROOT / name).resolve(), JUDGED_BY[name]
        source = path.read_text(encoding="utf-8")
        if not preload(tests) or not survives(path, ast.parse(source), tests):
            print(f"{name}: its tests fail as it is")
            return 1
        changes = list(mutants(source))
        print(f"{name}: {len(changes)} mutants", flush=True)
        with ThreadPoolExecutor(options.jobs) as pool:
            running = [pool.submit(survives, path, module, tests) for _, module in changes]
            alive = [one.result() for one in running]
        left = [line for (line, _), survived in zip(changes, alive, strict=True) if survived]
        print(f"{len(left)} survive", *left, sep="\n  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
