"""Which names are shown."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from heapwatch.explain.census import _in_words
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.names import key_label, qualified_type_name


class Name(str):
    pass


@pytest.mark.parametrize("key", ["alice@example.com", "u" * 41, 3, None, b"users", ("users",), Name("users")])
def test_a_key_that_is_no_short_identifier_is_not_shown(key: object) -> None:
    assert key_label(key) == "[*]"
    held: list[Any] = []
    assert _in_words({key: held}, held) == "dict"


def test_a_key_that_is_a_short_identifier_is_shown() -> None:
    assert key_label("users") == '["users"]'
    assert key_label("u" * 40) == f'["{"u" * 40}"]'


def test_a_class_is_shown_with_its_module_unless_everybody_knows_where_it_is() -> None:
    assert qualified_type_name(layout_of(collections.OrderedDict)) == "collections.OrderedDict"
    assert qualified_type_name(layout_of(list)) == "list"
