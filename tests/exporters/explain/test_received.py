"""Explanations that came from outside are checked before anything is done with them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.explain.received import explanation_of
from heapwatch.explain.source.sites import Site

FOUND = Finding(
    "container", "A.items", "list of int", 10, 1000, 60.0, 6000.0, 0.5,
    site=Site("a.py", 3, "fill"), holders=("A",), remedy="`clear()`", is_leak=True,
)  # fmt: skip
GOOD = Explanation("leak", 120.0, 12_000.0, 0.5, (FOUND,), "").as_json()


def changed(**fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(GOOD)) | fields


def with_finding(**fields: Any) -> dict[str, Any]:
    return changed(findings=[json.loads(json.dumps(GOOD))["findings"][0] | fields])


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else []


def test_what_was_sent_is_what_is_shown() -> None:
    assert explanation_of(json.loads(json.dumps(GOOD))) == Explanation("leak", 120, 12_000, 0.5, (FOUND,), "")


def test_fields_and_words_of_a_later_version_are_no_error() -> None:
    explanation = explanation_of(changed(verdict="slumbering", later={"a": 1}))
    assert narrative(explanation).startswith("slumbering: ")


@pytest.mark.parametrize(
    "document",
    [
        None, 3, "leak", [], {}, [GOOD], nested(500),
        changed(findings={}), changed(findings=[3]), changed(findings=[[]]), changed(verdict=3),
        changed(findings=[{}]), changed(seconds="long"), changed(seconds=True), changed(detail={}),
        changed(growth_bytes_per_minute=10**400), changed(growth_bytes_per_minute=float("nan")),
        changed(explained_share=float("inf")), changed(detail="x" * 20_000), changed(later=nested(20)),
        changed(findings=[GOOD["findings"][0]] * 1001),
        with_finding(share="half"), with_finding(items=1.5), with_finding(items=10**400),
        with_finding(bytes="many"), with_finding(bytes_per_minute=None), with_finding(path=[]),
        with_finding(holders="A"), with_finding(holders=[3]), with_finding(site="a.py:3"),
        with_finding(site={"file": "a.py", "line": "3", "function": ""}), with_finding(site={"file": "a.py"}),
        with_finding(remedy=7), with_finding(is_leak="yes"), with_finding(capacity_items=-1e300),
    ],
)  # fmt: skip
def test_anything_else_is_one_error(document: Any) -> None:
    with pytest.raises(ValueError, match=r"^.{5,250}$"):
        explanation_of(document)
