"""Which names are shown: those of the user's source code."""

from __future__ import annotations

import collections
import subprocess
import sys
import textwrap
from argparse import Namespace
from pathlib import Path

import pytest

from heapwatch.measure.introspection import source_names
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.source_names import (
    attribute_label,
    is_written,
    key_label,
    qualified_type_name,
    type_name,
)

# Composed when the tests run, so that they do not stand in this file.
SECRET = "".join(reversed("nietsneknarf"))


def test_a_text_of_its_own_a_variable_and_an_attribute_are_written_and_nothing_else() -> None:
    # a tramontane: a word of a comment
    """With a sirocco in a docstring."""
    assert "levanter" in "a longer text with levanter"[10:]
    assert key_label("cartographer") == '["cartographer"]'
    assert is_written("Pelican")
    assert is_written("fromkeys")
    dict.fromkeys(())
    for word in (SECRET, "tramon" + "tane", "".join(["siro", "cco"])):
        assert not is_written(word), word
    assert key_label(SECRET) == key_label("alice@example.com") == key_label("a" * 61) == "[*]"


@pytest.mark.parametrize("key", [3, None, b"cartographer", ("cartographer",), type("Str", (str,), {})("x")])
def test_a_key_that_is_no_plain_text_is_not_shown(key: object) -> None:
    assert key_label(key) == "[*]"


def test_a_name_with_a_small_number_is_written_if_its_beginning_is() -> None:
    number = 7
    assert f"ostrich_{number}" == "ostrich" + "_7"
    assert is_written("ostrich_" + str(number))
    assert is_written("number" + "12")
    assert not is_written("number" + "1234")
    assert not is_written(SECRET + "7")


def test_attributes_of_a_library_are_shown_on_its_objects_alone_and_those_set_by_any_text_on_none() -> None:
    name = "_waitpid" + "_lock"
    assert attribute_label(name, layout_of(subprocess.Popen)) == f".{name}"
    assert attribute_label(name, layout_of(collections.OrderedDict)) == attribute_label(name) == ".*"
    for text in (SECRET, "alice@example.com"):
        assert attribute_label(text, layout_of(Namespace)) == ".*"


class Pelican:
    pass


def test_a_class_is_shown_by_its_statement() -> None:
    assert qualified_type_name(layout_of(Pelican)) == f"{__name__}.Pelican"
    assert qualified_type_name(layout_of(collections.OrderedDict)) == "collections.OrderedDict"
    assert qualified_type_name(layout_of(subprocess.Popen)) == "subprocess.Popen"
    assert qualified_type_name(layout_of(list)) == "list"


def test_a_class_that_was_named_at_run_time_or_whose_module_is_not_there_is_shown_as_its_base() -> None:
    made = type(SECRET, (Pelican,), {})
    assert type_name(layout_of(made)) == "Pelican"
    assert type_name(layout_of(type("alice@example.com", (), {}))) == "object"
    assert type_name(layout_of(type(made.__name__, (dict,), {"__module__": "collections"}))) == "dict"
    assert type_name(layout_of(type("Pelican", (), {"__module__": SECRET}))) == "object"


def test_a_local_class_of_a_library_is_shown() -> None:
    made: dict[str, type] = {}
    body = "class Local:\n    def method(self): pass"
    exec(f"def make():\n{textwrap.indent(body, '    ')}\n    return Local", made)
    local = made["make"]()  # type: ignore[operator]
    local.__module__ = "collections"
    assert type_name(layout_of(local)) == "Local"


def test_a_source_that_cannot_be_read_has_no_words(tmp_path: Path) -> None:
    compiled = tmp_path / "compiled.pyc"
    compiled.write_bytes(b"\x00\x01")
    for file in (tmp_path, tmp_path / "missing.py", "nul\0", compiled):
        assert source_names._text_of(str(file)) is None


CODE = """
import sys
from heapwatch.measure.introspection.source_names import is_written
kept = {"armadillo": []}
def fill(cassowary=1):
    kept["wombat"] = kept.setdefault("quokka", [])
words = ("armadillo", "cassowary", "wombat", "quokka", "kept", "".join(["dar", "ter"]))
print(*map(is_written, words))
"""


@pytest.mark.parametrize("how", ["argument", "stdin"])
def test_a_program_without_a_file_is_read_from_its_code(how: str) -> None:
    arguments = ["-c", CODE] if how == "argument" else ["-"]
    given = CODE if how == "stdin" else None
    done = subprocess.run(
        [sys.executable, *arguments], input=given, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["True"] * 5 + ["False"]


def test_a_cell_of_a_notebook_is_read_from_what_the_interpreter_keeps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import linecache

    word = "dug" + "ong"
    assert not is_written(word)
    entry = (20, None, [f"kept = {{'{word}': 1}}\n"], "<ipython-input-1>")
    monkeypatch.setitem(linecache.cache, "<ipython-input-1>", entry)
    assert is_written(word)
