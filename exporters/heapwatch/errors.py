"""Errors that a command reports in one line, and the text for them."""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be carried out; the message says what is wrong and what is allowed."""


class Unreachable(Exception):
    """A trainer or Prometheus sent no usable response; the message says why."""


def reason(error: Exception) -> str:
    """Return the message of an error; for a system error with its file, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
