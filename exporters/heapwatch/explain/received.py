"""An explanation that came from outside: from a trainer, or from a file that anybody may have written."""

from __future__ import annotations

import math
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from heapwatch.explain.findings import Explanation, Finding, from_json, narrative
from heapwatch.explain.source.sites import Site

MOST_BYTES = 4 * 2**20
_MOST_PARTS = 1000
_LONGEST_TEXT = 10_000
_DEEPEST = 8
_LARGEST = 2.0**63


def explanation_of(document: Any) -> Explanation:
    """The explanation in a document that `as_json` is said to have made.

    Raises:
        ValueError: it is none that can be shown; the message says which field is wrong.

    """
    _bounded(document, "it", _DEEPEST)
    if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
        raise ValueError("it has no list of findings")
    _typed(document, Explanation, "it")
    for finding in document["findings"]:
        _typed(finding, Finding, "a finding")
    try:
        explanation = from_json(document)
        narrative(explanation)  # nothing in it may fail later
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise ValueError(f"it contradicts itself: {type(error).__name__}") from None
    return explanation


def _bounded(value: Any, what: str, depth: int) -> None:
    """Raise ValueError for what is too deep, too long or no finite number of a sensible size."""
    if isinstance(value, (dict, list)):
        if depth == 0 or len(value) > _MOST_PARTS:
            raise ValueError(f"{what} is too {'deep' if depth == 0 else 'long'}")
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            _bounded(key, "a name", 1)
            _bounded(part, str(key)[:60], depth - 1)
    elif isinstance(value, str) and len(value) > _LONGEST_TEXT:
        raise ValueError(f"{what} is too long")
    elif isinstance(value, (int, float)) and not (abs(value) < _LARGEST and math.isfinite(value)):
        raise ValueError(f"{what} is out of range")


def _typed(document: Any, shape: type, what: str) -> None:
    """Raise ValueError where a field has another type than that class declares; unknown fields are left."""
    if not isinstance(document, dict):
        raise ValueError(f"{what} is not a JSON object")
    for name, hint in get_type_hints(shape).items():
        if name in document and name != "findings" and not _is(document[name], hint):
            raise ValueError(f"the {name} of {what} has a wrong type")


def _is(value: Any, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_is(value, one) for one in get_args(hint))
    if origin is Literal:
        return isinstance(value, str)  # a later version may have further words
    if origin is tuple:
        return isinstance(value, list) and all(_is(part, get_args(hint)[0]) for part in value)
    if hint is Site:
        return isinstance(value, dict) and all(
            _is(value.get(name), one) for name, one in get_type_hints(Site).items()
        )
    if hint in (int, float):
        allowed = (int, float) if hint is float else int
        return isinstance(value, allowed) and not isinstance(value, bool)
    return value is None if hint is type(None) else isinstance(hint, type) and isinstance(value, hint)
