"""The exception whose message is shown to the user."""


class StackError(Exception):
    """An error that the user must resolve; its message is one line: what was wrong and what to do."""
