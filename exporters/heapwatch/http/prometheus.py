"""Answers of Prometheus's HTTP API."""

from __future__ import annotations

from typing import Any

from heapwatch.errors import Unreachable


def data_of(answer: Any) -> dict[str, Any]:
    """Return the data of an answer of Prometheus's API.

    Raises:
        Unreachable: it is none.

    """
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise Unreachable("this is no Prometheus: its API does not answer as one")
    data = answer["data"]
    return data if isinstance(data, dict) else {}


def escaped(text: str) -> str:
    """Return text as it stands between the quotes of a label matcher."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
