"""Responses of Prometheus's HTTP API."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from heapwatch.errors import Unreachable
from heapwatch.runtime.failures import describe


def data_of(answer: Any) -> dict[str, Any]:
    """Return the data of a response of Prometheus's API.

    Raises:
        Unreachable: it is not a successful response.

    """
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise Unreachable("not a Prometheus: its API does not respond as one")
    data = answer.get("data")
    return data if isinstance(data, dict) else {}


@contextmanager
def understood(what: str) -> Iterator[None]:
    """Raise Unreachable, which names `what`, for errors from a response of unexpected types.

    Raises:
        Unreachable: the response has unexpected types.

    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Unreachable(f"{what} sends an invalid response: {describe(error)}") from None


def escaped(text: str) -> str:
    """Return text escaped for the quotes of a label matcher."""
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
