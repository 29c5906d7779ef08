"""Tests mirror the tree: a module with logic has a test of its name, or an entry below."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.architecture.sources import tree

ROOT = Path(__file__).parents[2]
TESTS_OF = {
    "exporters/heapwatch": "tests/exporters",
    "alerting/heapwatch_receiver": "tests/alerting/receiver",
    "dashboards/heapwatch_dashboards": "tests/dashboards",
    "dashboards/heapwatch_viewer": "tests/dashboards/viewer",
    "stack/heapwatch_stack": "tests/stack",
}
LIBRARY, RECEIVER = "exporters/heapwatch", "alerting/heapwatch_receiver"
DASHBOARDS, VIEWER = "dashboards/heapwatch_dashboards", "dashboards/heapwatch_viewer"
# Parts of one whole, tested through what they are parts of: the test, and the modules without a namesake.
TESTED_BY = {
    "tests/alerting/receiver/test_ledger.py": f"{RECEIVER}: audit page",
    "tests/alerting/receiver/test_receiver.py": f"{RECEIVER}: worker performer __main__",
    "tests/alerting/receiver/test_trainer.py": f"{RECEIVER}: metrics",
    "tests/alerting/test_alertmanager.py": "stack/heapwatch_stack: alertmanager",
    "tests/alerting/test_services.py": f"{RECEIVER}: prometheus follow_up fetch",
    "tests/dashboards/test_generated.py": (
        f"{DASHBOARDS}: __main__ dashboard panel panels tables colors navigation promql boards/shared"
    ),
    "tests/dashboards/test_texts.py": f"{DASHBOARDS}: empty",
    "tests/dashboards/test_pages_agree.py": f"{DASHBOARDS}: queries/trainers",
    "tests/dashboards/test_what_pages_say.py": f"{DASHBOARDS}: queries/explanation",
    "tests/dashboards/viewer/test_browser.py": f"{VIEWER}: app",
    "tests/dashboards/viewer/test_panels.py": (
        f"{VIEWER}: prometheus panels/base panels/charts panels/table"
    ),
    "tests/stack/test_demo.py": "stack/heapwatch_stack: trainer",
    "tests/e2e/test_operations.py": "stack/heapwatch_stack: native report",
    "tests/exporters/analysis/test_leak.py": f"{LIBRARY}/analysis: observed",
    "tests/exporters/analysis/test_limits.py": f"{LIBRARY}/analysis: readings",
    "tests/exporters/cli/test_explain.py": f"{LIBRARY}/cli: attach",
    "tests/exporters/cli/test_sources.py": f"{LIBRARY}/http: client",
    "tests/exporters/cli/test_top.py": f"{LIBRARY}/cli: top_screen top_source",
    "tests/exporters/collectors/test_declared.py": f"{LIBRARY}/collectors: families",
    "tests/exporters/explain/test_inventory_safety.py": f"{LIBRARY}/explain: evidence",
    "tests/exporters/explain/test_attribution.py": f"{LIBRARY}/explain: findings",
    "tests/exporters/entering/test_entered_process.py": f"{LIBRARY}/entering: injected_code elf",
    "tests/exporters/integrations/test_ray.py": f"{LIBRARY}/integrations: rllib ray_tune",
    "tests/exporters/measure/sizing/test_deep_size.py": f"{LIBRARY}/measure/sizing: traversal",
    "tests/exporters/notebook/test_extension.py": f"{LIBRARY}/notebook: snapshots",
    "tests/exporters/report/test_findings.py": f"{LIBRARY}/report: document",
    "tests/exporters/testing/test_plugin.py": f"{LIBRARY}: testing/rounds explain/comparison",
    "tests/exporters/test_watch.py": f"{LIBRARY}: exporter",
    "tests/exporters/trackers/test_trackers.py": f"{LIBRARY}/trackers: mlflow tensorboard",
    "tests/stack/test_compose.py": "stack/heapwatch_stack: containers",
    "tests/stack/test_supervision.py": "stack/heapwatch_stack: services",
}
EXCEPTIONS = {
    f"{folder}/{name}.py": test
    for test, modules in TESTED_BY.items()
    for folder, names in [modules.split(": ")]
    for name in names.split()
}
MODULES = [
    path.relative_to(ROOT).as_posix()
    for folder in TESTS_OF
    for path in sorted((ROOT / folder).rglob("*.py"))
    if not any(parent.is_symlink() for parent in path.parents) and path.name != "__init__.py"
]
BRANCHES = (ast.If, ast.For, ast.While, ast.Try, ast.IfExp, ast.BoolOp, ast.comprehension)


def test_a_module_with_logic_is_tested_where_its_name_says() -> None:
    found = {module for module in MODULES if _namesake(module).exists()}
    assert [
        module for module in MODULES if _has_logic(module) and module not in found | set(EXCEPTIONS)
    ] == []


def test_an_exception_exists_and_is_needed() -> None:
    assert sorted(set(EXCEPTIONS) - set(MODULES)) == []
    assert [test for test in TESTED_BY if not (ROOT / test).exists()] == []
    assert [module for module in EXCEPTIONS if _namesake(module).exists() or not _has_logic(module)] == []


def _namesake(module: str) -> Path:
    for folder, tests in TESTS_OF.items():
        if module.startswith(folder + "/"):
            path = (ROOT / tests / module[len(folder) + 1 :]).with_suffix(".py")
            return path.with_name(f"test_{path.name}")
    raise ValueError(module)


def _has_logic(module: str) -> bool:
    functions = [
        node
        for node in ast.walk(tree(ROOT / module))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return any(isinstance(inner, BRANCHES) for node in functions for inner in ast.walk(node))
