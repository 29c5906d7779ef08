"""What is printed or logged passes `heapwatch.runtime.plain_text`, or a console of rich's without markup."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.test_imports import MODULES

# What prints by itself, and why nothing of a trainer is in it.
OWN_TEXT = {
    "heapwatch.runtime.plain_text": "the place itself",
    "heapwatch_dashboards.__main__": "names of its own files",
    "heapwatch_stack.bootstrap": "runs before anything is installed, beside pip",
}
_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")
_ROOMS = {module: path for module, path in MODULES.items() if module not in OWN_TEXT}


def calls(module: str) -> list[ast.Call]:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def named(call: ast.Call) -> str:
    return ast.unparse(call.func)


@pytest.mark.parametrize("module", sorted(_ROOMS))
def test_nothing_is_printed_past_it(module: str) -> None:
    past = []
    for call in calls(module):
        name = named(call)
        writes = name.endswith((".write", ".writelines")) and name.split(".")[-2] in _STREAMS
        if name in ("print", "builtins.print", "pprint", "rich.print") or writes:
            past.append(f"{call.lineno}: {ast.unparse(call)}")
    assert past == [], "call say() of heapwatch.runtime.plain_text"


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"heapwatch.runtime.plain_text"}))
def test_rich_is_given_no_markup(module: str) -> None:
    made = [
        f"{call.lineno}: {ast.unparse(call)}"
        for call in calls(module)
        if named(call).rpartition(".")[2] in ("Console", "Text", "from_markup", "from_ansi", "render_markup")
    ]
    assert made == [], "use console() and literal() of heapwatch.runtime.plain_text"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_no_log_line_has_a_traceback_of_the_program(module: str) -> None:
    """The texts of errors may hold what a program works on: `raised` says the class and the line."""
    beside = ("heapwatch_receiver", "heapwatch_viewer", "heapwatch_stack")
    if module.startswith(beside):
        return  # they run beside the program
    logged = [
        f"{call.lineno}: {ast.unparse(call)}"
        for call in calls(module)
        if named(call).rpartition(".")[2] in ("exception", "print_exc", "format_exc")
        or any(keyword.arg in ("exc_info", "stack_info") for keyword in call.keywords)
    ]
    assert logged == []


def test_exceptions_are_still_needed() -> None:
    def prints(module: str) -> bool:
        return any(named(call) in ("print", "output.write") for call in calls(module))

    assert [module for module in OWN_TEXT if not prints(module)] == []
