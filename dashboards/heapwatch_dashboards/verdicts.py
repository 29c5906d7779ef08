"""The words of a verdict, their numbers in queries, and their colours: the one place that maps them.

The contract has seven words, which the explanation of a trainer gives. `over a limit` and `down or stalled`
come from alerts alone. A greater number is worse; `job:trainer_verdict:state` has the whole ones.
"""

from . import colors

CODES = {
    "too early": 0.0,
    "healthy": 1.0,
    "warm-up": 1.1,
    "filling": 1.2,
    "growing": 2.0,
    "over a limit": 3.0,
    "will not fit": 3.5,
    "leak": 4.0,
    "down or stalled": 5.0,
}
_COLORS = {
    "too early": colors.UNKNOWN,
    "healthy": colors.GOOD,
    "warm-up": colors.SKY,
    "filling": colors.SKY,
    "growing": colors.NOTICE,
    "over a limit": colors.WARNING,
    "will not fit": colors.WARNING,
    "leak": colors.CRITICAL,
    "down or stalled": colors.DOWN,
}
VERDICTS = {code: (word, _COLORS[word]) for word, code in CODES.items()}

HEALTHY, GROWING, OVER, LEAK = (f"{CODES[word]:g}" for word in ("healthy", "growing", "over a limit", "leak"))
