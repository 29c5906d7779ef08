"""Annotations and the job summary of GitHub Actions."""

from __future__ import annotations

import os
from contextlib import suppress

from heapwatch.text.terminal import plain


def in_actions() -> bool:
    """Whether this process runs in a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotation(level: str, title: str, message: str, file: str = "", line: int = 0) -> str:
    """The line of output that GitHub shows as an annotation; `level` is `error`, `warning` or `notice`."""
    place = {"file": relative(file), "line": str(line)} if file and line else {}
    properties = ",".join(f"{name}={_property(value)}" for name, value in {**place, "title": title}.items())
    return f"::{level} {properties}::{_data(message)}"


def append_summary(text: str) -> None:
    """Add Markdown to the summary of the job of GitHub Actions, if there is one that can be written."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if path:
        with suppress(OSError), open(path, "a", encoding="utf-8") as summary:
            summary.write(text)


def relative(file: str) -> str:
    """A file as the repository names it: from the working directory, where it is below it."""
    try:
        path = os.path.relpath(os.path.realpath(file), os.path.realpath(os.curdir))
    except (OSError, ValueError):
        return file
    return file if path.startswith(os.pardir) else path.replace(os.sep, "/")


def _data(text: str) -> str:
    return plain(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
