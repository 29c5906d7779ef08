from __future__ import annotations

import ast
import linecache
import os
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

from heapwatch.explain.sites import uses_of
from heapwatch.explain.statements import source_of
from heapwatch.measure.introspection.attributes import nested_code

PROGRAM = '''
import heapq, re


class Trainer:
    """Keeps history."""

    @property
    def step(self):
        return len(self.history)

    def record(self, item, limit=100):
        self.history.append(
            item,
        )
        self.__private = re.compile("\\d") is 5
        if len(self.history) > 1_000:
            del self.history[0]
        text = """
no indentation
"""

    def step_of(self, kept):
        def later(item):
            super().__init__()
            kept.append(item)
            heapq.heappush(kept, item)
        return [later for later in (later,)]

    def later(self):
        later(self)


for at in range(2):
    kept = lambda item: history.append(item)
'''


@pytest.fixture
def compiled(tmp_path: Path) -> Callable[[str], dict[str, CodeType]]:
    """The code of each function of a program in a file."""

    def compiled(text: str, file: str = str(tmp_path / "program.py")) -> dict[str, CodeType]:
        if os.path.isabs(file):
            Path(file).write_text(text, encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = compile(text, file, "exec", dont_inherit=True)
        return {code.co_name: code for code in nested_code(top)}

    return compiled


def test_each_function_has_its_source_with_the_lines_of_the_file(compiled, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        filters = list(warnings.filters)
        bodies = {name: source_of(code) for name, code in compiled(PROGRAM).items() if "comp" not in name}
        assert warnings.filters == filters
    assert [name for name, body in bodies.items() if body is None] == []
    record = bodies["record"]
    assert record is not None
    assert (record[0].lineno, record[-1].end_lineno) == (13, 21)
    assert capfd.readouterr().err == "", "the compiler remarks on the program"


def test_a_private_name_is_the_one_that_the_object_has(compiled):
    (use,) = uses_of("_Trainer__private", [compiled(PROGRAM)["record"]], "attribute")
    assert (use.effect, use.site.line) == ("empties", 16)


@pytest.mark.parametrize(
    ("before", "after"), [("class Trainer", "\nclass Trainer"), ("def record", "def other")]
)
def test_source_that_changed_since_the_import_is_unknown(compiled, tmp_path, before, after):
    code = compiled(PROGRAM)["record"]
    assert source_of(code) is not None
    (tmp_path / "program.py").write_text(PROGRAM.replace(before, after), encoding="utf-8")
    assert source_of(code) is None
    (tmp_path / "program.py").unlink()
    assert source_of(code) is None


def test_what_was_typed_is_found_where_the_shell_left_it(compiled):
    text = "async def fill(item):\n    history.append(await item)\n"
    code = compiled(text, "<input>")["fill"]
    assert source_of(code) is None
    linecache.cache["<input>"] = (len(text), None, text.splitlines(True), "<input>")
    try:
        (use,) = uses_of("history", [code])
        assert use.site.line == 2
    finally:
        del linecache.cache["<input>"]


def test_a_function_of_a_long_file_is_parsed_alone(compiled, monkeypatch):
    body = textwrap.indent("x = [1, 2, 3]\n" * 40, "    ")
    codes = compiled("".join(f"def number_{at}():\n{body}\n" for at in range(200)))
    parsed: list[str] = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *rest: parsed.append(text.strip()) or parse(text, *rest))
    assert source_of(codes["number_150"]) is not None
    assert len(parsed) == 1
    assert len(parsed[0]) < 1_000
    assert source_of(codes["<module>"]) is None, "too long to be parsed at once"
