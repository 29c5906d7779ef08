"""Text from untrusted sources, escaped for terminals, logs and reports."""

from __future__ import annotations


def plain(text: object, most: int = 0) -> str:
    r"""Return the text in one line with control characters as visible escapes, such as `\x1b`.

    Covers C0 and C1 controls, line and paragraph separators, surrogates, and marks that change the direction
    of writing.

    Args:
        text: text from a trainer, a label, a response or a file.
        most: largest number of characters; 0 keeps all.

    """
    given = str(text)
    if most and len(given) > most:
        given = given[: most - 3] + "..."
    if given.isprintable():
        return given
    return "".join(character if character.isprintable() else _escaped(character) for character in given)


def _escaped(character: str) -> str:
    return " " if character == "\u00a0" else character.encode("unicode_escape").decode("ascii")
