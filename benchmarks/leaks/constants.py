"""The constants of the judge, and what becomes of its verdicts where one of them is another.

`python -m benchmarks.leaks.constants` judges generated scenarios with each constant changed, and writes the
table into `constants.md` beside this file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from benchmarks.leaks.judge import OURS, Score, judge
from benchmarks.leaks.judged import firing
from benchmarks.leaks.scenario import Scenario, generate, load
from benchmarks.measure import write_part
from heapwatch.judge import component, explained, growth, measured, trainer
from heapwatch.text import markdown

DOCUMENT = Path(__file__).with_name("constants.md")
BEGIN, END = "<!-- Written by `python -m benchmarks.leaks.constants`. -->", "<!-- End of the constants. -->"
_MODULES = (component, explained, growth, measured, trainer)


class Constant(NamedTuple):
    """A constant: where it is, its unit, why it is needed, and a value to compare with."""

    name: str
    unit: str
    reason: str
    other: Any


CONSTANTS = (
    Constant(
        "WINDOWS", "min", "a fast leak is found in the shortest, one below noise in the longest", (16, 32, 64)
    ),
    Constant("_HELD", "readings", "the lowest of them is what is kept: a dip of one reading is real", 4),
    Constant("EARLIER_MINUTES", "min", "a rise is material compared with the level before it began", 48),
    Constant("MEASURED.second_half", "of the rate", "a warm-up slows down", 0.8),
    Constant("MEASURED.last_part", "of the rate", "a cache that fills slows down at its end", 0.5),
    Constant("MEASURED.largest_step", "of the rise", "what is loaded once or twice is no leak", 0.8),
    Constant("MEASURED.earlier", "of half a span before", "growth that was faster before slows down", 0.0),
    Constant("MEASURED.straight", "R squared", "noise and new shapes of a batch make no line", 0.0),
    Constant("_FAST_SHARE", "of the level, a minute", "six minutes tell only fast growth from noise", 0.002),
    Constant("_STRAIGHT", "R squared", "six minutes tell only a line from a swing", 0.9),
    Constant("_YOUNG_STRAIGHT", "R squared", "of a young process warm-ups are steeper", 0.9),
    Constant(
        "_FAST_CHANGES", "of 11 rises", "a count that rises at each reading is not one that is trimmed", 6
    ),
    Constant("MATERIAL_SHARE", "of the level", "noise of resident memory that stands still", 0.005),
    Constant("MATERIAL_BYTES", "bytes", "noise of a small process", 0.5e6),
    Constant("_MATERIAL_ITEMS", "items", "a few objects come and go", 0.0),
    Constant("_MATERIAL_ROOTS", "of the root", "a population of n swings by about its root", 0.0),
    Constant("MATURE_MINUTES", "min", "before that a slow leak and a warm-up look the same", 8),
    Constant("_YOUNG_CYCLES", "cycles", "what lives for a cycle has ended then", 0),
    Constant("_HOLD_STEPS", "half minutes", "an alert does not end in a pause of the growth", 1),
    Constant("BUFFER_SHARE", "of the filling", "error of the measured size of a buffer", 0.0),
    Constant("_TOLERANCE", "of the growth", "error of what malloc keeps, and of pages touched late", 0.0),
)


@contextmanager
def changed(name: str, value: Any) -> Iterator[None]:
    """Judge with another value of a constant, such as `MEASURED.earlier`."""
    owner, _, attribute = name.partition(".")
    places = [module for module in _MODULES if hasattr(module, owner)]
    before = getattr(places[0], owner)
    new = replace(before, **{attribute: value}) if attribute else value
    _set(places, owner, new)
    try:
        yield
    finally:
        _set(places, owner, before)


def _set(places: list[ModuleType], name: str, value: Any) -> None:
    for module in places:
        setattr(module, name, value)


def value_of(name: str) -> Any:
    """The value of a constant."""
    owner, _, attribute = name.partition(".")
    value = next(getattr(module, owner) for module in _MODULES if hasattr(module, owner))
    return getattr(value, attribute) if attribute else value


def scored(scenarios: list[Scenario]) -> list[str]:
    """Precision, recall, and the delay of one leak in two and of nine in ten."""
    score = Score()
    for scenario in scenarios:
        judge(scenario, firing(scenario), {OURS: score})
    return score.cells()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaks.constants", description=__doc__)
    parser.add_argument("--seed", type=int, default=31, help="of the generated scenarios")
    parser.add_argument("--scenarios", type=Path, help="a folder of *.json.gz to use instead")
    chosen = parser.parse_args()
    if chosen.scenarios:
        scenarios = [load(path) for path in sorted(chosen.scenarios.glob("*.json.gz"))]
    else:
        scenarios = list(generate(chosen.seed, 1))
    rows = [["as they are", "", "", "", *scored(scenarios)]]
    for constant in CONSTANTS:
        print(constant.name, file=sys.stderr, flush=True)
        with changed(constant.name, constant.other):
            found = scored(scenarios)
        value = f"{_text(value_of(constant.name))} {constant.unit}"
        rows.append([f"`{constant.name}`", value, constant.reason, _text(constant.other), *found])
    head = ["constant", "value", "reason", "compared with", "precision", "recall", "median delay", "p90"]
    table = markdown.table(head, rows)
    command = f"`python -m benchmarks.leaks.constants --seed {chosen.seed}`, {len(scenarios)} scenarios:"
    print(table)
    if not chosen.scenarios:
        write_part(DOCUMENT, BEGIN, END, f"{command}\n\n{table}")


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}"


if __name__ == "__main__":
    main()
