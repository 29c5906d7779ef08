"""The exception whose message is shown to the user."""


class StackError(Exception):
    """Something a person must act on; its message is one line that says what was wrong and what to do."""
