"""Which names are shown."""

from __future__ import annotations

import collections

import pytest

from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.source_names import attribute_label, key_label, qualified_type_name


@pytest.mark.parametrize("key", ["history", "layer_7", "a" * 40])
def test_a_key_that_could_be_a_name_is_shown(key: str) -> None:
    assert key_label(key) == f'["{key}"]'


@pytest.mark.parametrize(
    "key", ["alice@example.com", "two words", "7", "", "a" * 41, 3, b"history", type("Text", (str,), {})("x")]
)
def test_any_other_key_is_not(key: object) -> None:
    assert key_label(key) == "[*]"


def test_an_attribute_is_shown_unless_it_is_any_text() -> None:
    assert attribute_label("_buffer") == "._buffer"
    assert attribute_label("alice@example.com") == attribute_label("a" * 61) == ".*"


class Pelican:
    pass


def test_a_class_is_shown_with_its_module() -> None:
    assert qualified_type_name(layout_of(Pelican)) == f"{__name__}.Pelican"
    assert qualified_type_name(layout_of(collections.OrderedDict)) == "collections.OrderedDict"
    assert qualified_type_name(layout_of(list)) == "list"
