"""One colour and one word for one meaning, on every dashboard.

The hues are those of Okabe and Ito's palette for colour-blind readers (https://jfly.uni-koeln.de/color/),
which are readable on a light and on a dark background. A colour is never the only sign: the verdict is also a
word, and a limit is also a dashed line.
"""

from collections.abc import Mapping
from typing import Any

GOOD = "#009E73"
NOTICE = "#F0E442"
WARNING = "#E69F00"
CRITICAL = "#D55E00"
DOWN = "#CC79A7"
UNKNOWN = "#8E8E8E"

BLUE = "#0072B2"
PLAIN = "#3A95D0"  # a number without judgement: readable on both backgrounds
SKY = "#56B4E9"

SEVERITIES = {"warning": WARNING, "critical": CRITICAL, "emergency": DOWN}

Json = dict[str, Any]
# Value to text and colour.
Words = Mapping[int, tuple[str, str]] | Mapping[float, tuple[str, str]] | Mapping[str, tuple[str, str]]


def value_mappings(texts: Words) -> list[Json]:
    """Grafana value mappings from a number or a word to (text, colour)."""
    options = {
        value if isinstance(value, str) else f"{value:g}": {"text": text, "color": color, "index": index}
        for index, (value, (text, color)) in enumerate(texts.items())
    }
    return [{"type": "value", "options": options}]


def thresholds(base: str, *steps: tuple[float, str]) -> dict[str, Any]:
    """Absolute thresholds: the colour below the first step, then (value, colour) in rising order."""
    return {
        "mode": "absolute",
        "steps": [
            {"color": base, "value": None},
            *({"color": color, "value": value} for value, color in steps),
        ],
    }


def judged(good: str, *steps: tuple[float, str]) -> dict[str, Any]:
    """Thresholds of a value of 0 or more. A missing value is below them, and gets no colour of a verdict."""
    return thresholds(UNKNOWN, (0, good), *steps)


NEUTRAL = thresholds(PLAIN)

# The words of a verdict, their numbers in queries, and their colours. Seven words are those of a trainer's
# own judge; `over a limit`, `not judged` and `down or stalled` come from alerts. A greater number is worse
# and hides the others: what a late judge said last is shown only if it is worse than not to know.
VERDICTS = {
    0.0: ("too early", UNKNOWN),
    1.0: ("healthy", GOOD),
    1.1: ("warm-up", SKY),
    1.2: ("filling", SKY),
    2.0: ("growing", NOTICE),
    2.5: ("not judged", WARNING),
    3.0: ("over a limit", WARNING),
    3.5: ("will not fit", WARNING),
    4.0: ("leak", CRITICAL),
    5.0: ("down or stalled", DOWN),
}
CODES = {word: code for code, (word, _) in VERDICTS.items()}
HEALTHY, GROWING, OVER, LEAK = (f"{CODES[word]:g}" for word in ("healthy", "growing", "over a limit", "leak"))
