"""The words of a verdict, in rising order of severity: claim, what to do, exit code."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Word = Literal["healthy", "warm-up", "filling", "too early", "growing", "will not fit", "leak"]


class Meaning(NamedTuple):
    """What a verdict claims, what a person does about it, and the exit code of a command."""

    claim: str
    action: str
    exit_code: int


MEANINGS: dict[Word, Meaning] = {
    "healthy": Meaning("nothing that is watched grows by an amount that matters", "nothing", 0),
    "warm-up": Meaning("it grew, and a test shows that it slows down", "nothing", 0),
    "filling": Meaning("a bound ends the growth, and there is enough memory until then", "nothing", 0),
    "too early": Meaning("not certain yet; the text says what is missing, and for how long", "wait", 0),
    "growing": Meaning(
        "growth continues and has not slowed down, but is not as steady or as large as a leak",
        "check what grows most, and the time until the memory limit",
        0,
    ),
    "will not fit": Meaning(
        "a bound ends the growth, but memory runs out before", "lower the bound, or add memory", 2
    ),
    "leak": Meaning(
        "it grows without a bound, continues, and matters", "change the named line; see the remedy", 2
    ),
}
WORDS: tuple[Word, ...] = get_args(Word)
SERIOUS: tuple[Word, ...] = ("will not fit", "leak")  # someone has to act


def exit_code(word: str) -> int:
    """The exit code of a command that ends with this verdict; 0 for a word that a later version knows."""
    return MEANINGS[word].exit_code if word in MEANINGS else 0
