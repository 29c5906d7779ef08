"""Errors that a command reports in one line."""

from __future__ import annotations


class UsageError(Exception):
    """The command cannot do what it was asked for; says what is wrong and what is allowed."""


class Unreachable(Exception):
    """A trainer or Prometheus gave no usable answer; says why."""
