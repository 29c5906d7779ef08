"""Escapes text from untrusted sources in every line that is printed, logged or reported."""

from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def plain(text: object, most: int = 0) -> str:
    r"""Return the text in one line with control characters as visible escapes, such as `\x1b`.

    Covers C0 and C1 controls, DEL, line and paragraph separators, surrogates, marks that change the direction
    of writing, and other characters that cannot be seen.

    Args:
        text: text from a trainer, a label, a response or a file.
        most: largest number of characters; 0 keeps all.

    """
    shown = str(text)
    if most and len(shown) > most:
        shown = shown[: most - 3] + "..."
    if shown.isprintable():
        return shown
    return "".join(character if character.isprintable() else _escaped(character) for character in shown)


def _escaped(character: str) -> str:
    return " " if character == "\u00a0" else character.encode("unicode_escape").decode("ascii")


class Block(tuple[str, ...]):
    """Lines that are logged together."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(plain, self))


def say(*lines: object, error: bool = False, most: int = 0, stream: TextIO | None = None) -> None:
    """Print each of these lines as `plain` text, and what the stream cannot encode as an escape.

    Args:
        lines: a line break inside of one is escaped.
        error: whether to print to stderr.
        most: largest number of characters of a line; 0 keeps all.
        stream: to print to in place of these.

    """
    stream = stream or (sys.stderr if error else sys.stdout)
    if stream is None:
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"
    for line in lines:
        print(plain(line, most).encode(encoding, "backslashreplace").decode(encoding), file=stream)
    stream.flush()


def say_json(document: Any) -> None:
    """Print a document as indented JSON in ASCII, without control characters."""
    say(*json_text(document).split("\n"))


def json_text(document: Any) -> str:
    """A document as indented JSON in ASCII, without control characters other than line breaks."""
    return json.dumps(document, indent=2).replace("\x7f", "\\u007f")


def console(*, error: bool = False) -> Console:
    """Rich's console of stdout, or of stderr, that takes no text for markup."""
    from rich.console import Console

    return Console(stderr=error, markup=False, highlight=False, emoji=False)


def literal(text: object, style: str = "") -> Text:
    """A text for this console as it is, in this style."""
    from rich.text import Text

    return Text(plain(text), style)


_log = logging.getLogger("heapwatch")


def show_notices() -> None:
    """Show log lines from level INFO on stderr if the program has not configured logging."""
    if _log.level != logging.NOTSET or _log.handlers or logging.getLogger().handlers:
        return
    handler = _Notices()
    handler.setFormatter(logging.Formatter("heapwatch: %(message)s"))
    _log.addHandler(handler)
    _log.setLevel(logging.INFO)


class _Notices(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to stderr unless another handler takes the record."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers and sys.stderr is not None:
            self.setStream(sys.stderr)  # a notebook or a test may have replaced it since
            super().emit(record)


def _made_plain(record: logging.LogRecord) -> bool:
    """Make a record one line. A traceback is left out: it has the texts of errors."""
    block = record.args[0] if isinstance(record.args, tuple) and len(record.args) == 1 else None
    record.msg = str(block) if isinstance(block, Block) else plain(record.getMessage())
    record.args = record.exc_info = record.exc_text = record.stack_info = None
    return True


_log.addFilter(_made_plain)
