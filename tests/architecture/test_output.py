"""What is printed or logged passes `heapwatch.text.terminal`, or a console of rich's without markup."""

from __future__ import annotations

import ast
from functools import cache

from tests.support.sources import MODULES, tree

# What prints by itself, and why nothing of a trainer is in it.
OWN_TEXT = {
    "heapwatch.text.terminal": "the place itself",
    "heapwatch_dashboards.__main__": "names of its own files",
    "heapwatch_stack.bootstrap": "runs before anything is installed, beside pip",
}
_STREAMS = ("stdout", "stderr", "__stdout__", "__stderr__")


@cache
def calls(module: str) -> list[ast.Call]:
    return [node for node in ast.walk(tree(MODULES[module])) if isinstance(node, ast.Call)]


def named(call: ast.Call) -> str:
    return ast.unparse(call.func)


def test_nothing_is_printed_past_it() -> None:
    past = []
    for module in sorted(MODULES.keys() - OWN_TEXT.keys()):
        for call in calls(module):
            name = named(call)
            writes = name.endswith((".write", ".writelines")) and name.split(".")[-2] in _STREAMS
            if name in ("print", "builtins.print", "pprint", "rich.print") or writes:
                past.append(f"{module}:{call.lineno}: {ast.unparse(call)}")
    assert past == [], "call say() of heapwatch.text.terminal"


def test_rich_is_given_no_markup() -> None:
    makers = ("Console", "Text", "from_markup", "from_ansi", "render_markup")
    made = [
        f"{module}:{call.lineno}: {ast.unparse(call)}"
        for module in sorted(MODULES.keys() - {"heapwatch.text.terminal"})
        for call in calls(module)
        if named(call).rpartition(".")[2] in makers
    ]
    assert made == [], "use console() and literal() of heapwatch.text.terminal"


def test_no_log_line_has_a_traceback_of_the_program() -> None:
    """The texts of errors may hold what a program works on: `raised` says the class and the line."""
    beside = ("heapwatch_receiver", "heapwatch_viewer", "heapwatch_stack")  # they run beside the program
    logged = [
        f"{module}:{call.lineno}: {ast.unparse(call)}"
        for module in sorted(MODULES)
        if not module.startswith(beside)
        for call in calls(module)
        if named(call).rpartition(".")[2] in ("exception", "print_exc", "format_exc")
        or any(keyword.arg in ("exc_info", "stack_info") for keyword in call.keywords)
    ]
    assert logged == []
