"""Errors that a command reports in one line."""

from __future__ import annotations


class UsageError(Exception):
    """The command line cannot be carried out; the message says what is wrong and what is allowed."""


class Unreachable(Exception):
    """A trainer or Prometheus sent no usable response; the message says why."""
