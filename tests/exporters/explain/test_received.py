"""Explanations that came from outside are checked; series carry them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from heapwatch.explain.findings import Explanation, Finding, narrative
from heapwatch.explain.received import explanation_of
from heapwatch.explain.sites import Site

FOUND = Finding(
    "container", "A.items", "list of int", 10, 1000, 60.0, 6000.0, 0.5,
    site=Site("a.py", 3, "fill"), holders=("A",), remedy="`clear()`", is_leak=True,
)  # fmt: skip
NATIVE = Finding("native", None, "memory")
SENT = Explanation("leak", 120.0, 12_000.0, 0.5, (FOUND, NATIVE), "", after_cleanup="A regular cleanup.")
GOOD = SENT.as_json()


def changed(**fields: Any) -> dict[str, Any]:
    return json.loads(json.dumps(GOOD)) | fields


def with_finding(**fields: Any) -> dict[str, Any]:
    return changed(findings=[json.loads(json.dumps(GOOD))["findings"][0] | fields])


def test_what_was_sent_is_what_is_shown():
    assert explanation_of(json.loads(json.dumps(GOOD))) == SENT


def test_fields_and_words_of_a_later_version_are_no_error():
    explanation = explanation_of(changed(verdict="slumbering", later={"a": 1}))
    assert narrative(explanation).startswith("slumbering: ")


@pytest.mark.parametrize(
    "document",
    [
        None, "leak", [GOOD], {}, changed(findings=[3]), changed(findings=[{}]), changed(verdict=3),
        changed(seconds="long"), changed(growth_bytes_per_minute=10**400),
        changed(growth_bytes_per_minute=float("nan")),
        with_finding(share="half"), with_finding(bytes="many"), with_finding(holders=3),
        with_finding(site="a.py:3"), with_finding(site={"file": "a.py"}),
    ],
)  # fmt: skip
def test_anything_else_is_one_error(document):
    with pytest.raises(ValueError, match=r"^.{5,250}$"):
        explanation_of(document)
