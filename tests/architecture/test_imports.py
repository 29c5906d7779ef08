"""What may import what: each part imports from the parts below it, and no module imports in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support.sources import MODULES, tree

# From the lowest to the highest; parts on one line do not import each other. docs/architecture.md draws them.
LAYERS = (
    ("data", "errors", "text", "judge"),
    ("measure",),
    ("runtime",),
    ("collectors",),
    ("recording",),
    ("explain",),
    ("http",),
    ("lost",),
    ("discovery", "stacks"),
    ("registration",),
    ("machine",),
    ("exporter",),
    ("watch",),
    ("lifecycle",),
    ("entering",),
    ("report", "trackers", "integrations", "testing", "notebook"),
    ("cli",),
    ("__main__",),
)
# The other packages stand beside the library and take only what is listed here from the rest.
BESIDE = {
    "heapwatch_receiver": {"data", "runtime", "text", "http", "lost"},
    "heapwatch_dashboards": {"judge"},
    "heapwatch_viewer": {"data", "http", "text"},
    "heapwatch_stack": {
        "data",
        "errors",
        "runtime",
        "text",
        "http",
        "judge",
        "discovery",
        "measure",
        "lifecycle",
        "stacks",
        "heapwatch_receiver",
        "heapwatch_viewer",
    },
}
# What `import heapwatch; heapwatch.start(...)` must not load.
HEAVY = ("report", "trackers", "integrations", "testing", "notebook", "cli", *BESIDE)


def imports(module: str, *, lazy: bool) -> Iterator[str]:
    """Modules of this package that a module imports; with `lazy` also inside of functions."""
    parsed = tree(MODULES[module])
    nodes = ast.walk(parsed) if lazy else _when_loaded(parsed)
    for node in nodes:
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            known = name if name in MODULES else name.rpartition(".")[0]
            if known in MODULES and known != module:
                yield known


def _when_loaded(parent: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(parent):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node
            yield from _when_loaded(node)


def part(module: str) -> str:
    package, *inside = module.split(".")
    return package if package != "heapwatch" else inside[0] if inside else ""


def test_every_part_has_its_place() -> None:
    placed = {name for layer in LAYERS for name in layer} | set(BESIDE) | {""}
    assert {part(module) for module in MODULES} - placed == set()


def test_imports_point_downwards() -> None:
    height: dict[str, float] = {name: at for at, layer in enumerate(LAYERS) for name in layer}
    # the command line, the topmost, is that of the stack too
    height |= dict.fromkeys(BESIDE, height["cli"] - 0.5)

    def allowed(own: str, other: str) -> bool:
        if other in ("", own) or not own:  # the root imports nothing when it is loaded
            return True
        return other in BESIDE[own] if own in BESIDE else height.get(other, len(LAYERS)) < height[own]

    upward = [
        f"{module} imports {imported}, which is not below it"
        for module in sorted(MODULES)
        for imported in imports(module, lazy=False)
        if not allowed(part(module), part(imported))
    ]
    assert upward == []


def test_no_circle_even_by_lazy_imports() -> None:
    graph = {module: set(imports(module, lazy=True)) for module in MODULES if module != "heapwatch"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_starting_a_watch_loads_no_report_no_stack_and_no_library_of_a_trainer() -> None:
    import subprocess
    import sys

    code = (
        "import sys, heapwatch; heapwatch.start; "
        "print(*(m for m in sys.modules if m.partition('.')[0] in ('heapwatch', 'Box2D', 'numpy', 'torch')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert [name for name in loaded.split() if part(name) in (*HEAVY, "Box2D", "numpy", "torch")] == []
