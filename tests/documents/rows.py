"""What a row of the tables in `docs/systems` is, and what most rows look at."""

import re
from collections.abc import Callable
from typing import NamedTuple

from heapwatch.analysis.limits import PROFILES, limits_of
from heapwatch.analysis.readings import Component
from tests.documents.example import Example
from tests.repository import REPOSITORY


class Row(NamedTuple):
    """What a document has, where it is here, how to try it, and the check of it on a running example."""

    has: str
    here: str
    attempt: str
    check: Callable[[Example], None]


def exposes(*names: str) -> Callable[[Example], None]:
    """A check that these series are exposed."""

    def check(example: Example) -> None:
        example.until(lambda: not [name for name in names if f"\n{name}" not in example.metrics()])

    return check


def labels(series: str, label: str, *values: str) -> Callable[[Example], None]:
    """A check that a series has these values of a label."""

    def check(example: Example) -> None:
        example.until(lambda: set(values) <= example.readings().by(series, label).keys())

    return check


def logs(*parts: str) -> Callable[[Example], None]:
    """A check that the trainer's own log says all of this, in time."""

    def check(example: Example) -> None:
        example.until(lambda: all(part in example.log() for part in parts))

    return check


def limit(profile: str, resource: str, component: str, **wanted: float) -> Callable[[Example], None]:
    """A check of limits, by severity or as growth by `minute`, `episode`, `epoch` or `generation`.

    The trainer exports the profile's name, and the console and the rules have the limits of that.
    """

    def check(example: Example) -> None:
        chosen, key = PROFILES[profile], Component(resource, component)
        readings = example.readings()
        assert list(readings.by("trainer_limit_profile", "profile")) == [profile.removesuffix("-aggressive")]
        known = {**limits_of(readings, profile).get(key, {}), **chosen.growth.get(key, {})}
        assert {name: known.get(name) for name in wanted} == wanted
        rules = (REPOSITORY / "prometheus" / "rules" / "default_limits.yml").read_text()
        for value in wanted.values():
            assert re.search(rf"\b{re.escape(f'{value:g}')} .*{{profile=\"{profile}\"}}", rules)

    return check
