"""Progress lines for the user, and the exception whose message the user sees."""

from collections.abc import Callable

Say = Callable[[str], None]  # is given one line of progress


class FetchError(Exception):
    """A release or a package cannot be fetched; one line with the reason."""


class StackError(Exception):
    """An error that the user must resolve; its message is one line: what was wrong and what to do."""
