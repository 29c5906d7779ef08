"""Rich's console for text that is not ours: nothing in it is markup, a link or a control character."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from heapwatch.runtime.plain_text import plain


def console(*, error: bool = False) -> Console:
    """A console of stdout, or of stderr, that takes no text for markup."""
    return Console(stderr=error, markup=False, highlight=False, emoji=False)


def literal(text: object, style: str = "") -> Text:
    """A text as it is, in this style."""
    return Text(plain(text), style)
