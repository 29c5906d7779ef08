"""Refuses unknown environment variables: a misspelt one must not be ignored."""

from __future__ import annotations

from collections.abc import Mapping

from heapwatch.runtime.environment import KNOWN, RECEIVER_PREFIX, unread
from heapwatch_stack.errors import StackError


def refuse_unknown(environment: Mapping[str, str]) -> None:
    """Raise StackError for the first unknown `HEAPWATCH_*` name, with the nearest known name."""
    if not any(name.startswith(RECEIVER_PREFIX) for name in environment.keys() - KNOWN):
        problem = unread(environment)
    else:
        from heapwatch_receiver.settings import Settings  # needs pydantic: imported for a receiver's name

        problem = unread(environment, {RECEIVER_PREFIX + field.upper() for field in Settings.model_fields})
    if problem:
        raise StackError(problem)
