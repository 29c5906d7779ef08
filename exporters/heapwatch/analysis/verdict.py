"""The words of a verdict, in rising order of severity: claim, what to do, exit code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

Word = Literal["healthy", "warm-up", "filling", "too early", "growing", "will not fit", "leak"]


class Meaning(NamedTuple):
    """What a verdict claims, what a person does about it, and the exit code of a command."""

    claim: str
    action: str
    exit_code: int


MEANINGS: dict[Word, Meaning] = {
    "healthy": Meaning("nothing that is watched grows by an amount that matters", "nothing", 0),
    "warm-up": Meaning("it grew, and was tested to slow down", "nothing", 0),
    "filling": Meaning("a bound ends the growth, and the memory that is left suffices for it", "nothing", 0),
    "too early": Meaning("cannot be told yet; the text says what it waits for, and until when", "wait", 0),
    "growing": Meaning(
        "it goes on and has not slowed down, but is not as steady or as large as a leak",
        "look at what grows most, and at the time that is left",
        0,
    ),
    "will not fit": Meaning(
        "a bound ends the growth, but the memory ends before it", "lower the bound, or find more memory", 2
    ),
    "leak": Meaning("it grows without a bound, goes on, and matters", "follow the line and the remedy", 2),
}
WORDS: tuple[Word, ...] = get_args(Word)
SERIOUS: tuple[Word, ...] = ("will not fit", "leak")  # someone has to act


def exit_code(word: str) -> int:
    """The exit code of a command that ends with this verdict; 0 for a word that a later version knows."""
    return MEANINGS[word].exit_code if word in MEANINGS else 0


def worst(words: Iterable[Word]) -> Word:
    """The most severe of some verdicts; `healthy` if there are none."""
    return max(words, key=WORDS.index, default="healthy")
