"""How most rows of the tables in `docs/systems` are checked."""

import re
from collections.abc import Callable

from heapwatch.collectors.readings import LEVEL_SERIES
from heapwatch.judge.component import Component
from heapwatch.judge.limits import ALIASES, SEVERITIES
from tests.documents.example import Example
from tests.documents.rules import alerts_at, alerts_growing, evaluate

Check = Callable[[Example], None]  # of a running example


def labels(series: str, label: str, *values: str) -> Check:
    """A check that a series has these values of a label."""

    def check(example: Example) -> None:
        example.until(lambda: set(values) <= example.readings().by(series, label).keys())

    return check


def logs(*parts: str) -> Check:
    """A check that the trainer's own log says all of this, in time."""

    def check(example: Example) -> None:
        example.until(lambda: all(part in example.log() for part in parts))

    return check


def limit(profile: str, resource: str, component: str, **wanted: float) -> Check:
    """A check of limits, by severity or as growth by `minute`, `episode`, `epoch` or `generation`.

    At the limit the status of the running example has the alert, and one byte or item below it the milder one
    or none. Growth alerts above its limit, and not at it. The rules record exactly these limits for what the
    example exposes.
    """

    def check(example: Example) -> None:
        base = profile.removesuffix("-aggressive")
        # Without what the trainer declares, such as by `watch.expect`, which goes before its profile.
        text = re.sub(r"(?m)^trainer_(growth_)?limit\{.*\n", "", example.metrics())
        assert list(example.readings().by("trainer_limit_profile", "profile")) == [base]
        key = Component(resource, component)
        levels = {name: value for name, value in wanted.items() if name in SEVERITIES}
        own, milder = "" if profile == base else profile, []
        for severity, value in sorted(levels.items(), key=lambda level: level[1]):
            below, at = (
                [(alert["severity"], alert["limit"]) for alert in alerts_at(text, key, level, own)]
                for level in (value - 1, value)
            )
            assert (below, at) == (milder, [(severity, value)])
            milder = at
        for per in wanted.keys() - levels.keys():
            at, above = (
                [(alert["per"], alert["limit"]) for alert in alerts_growing(text, key, rate, per, own)]
                for rate in (wanted[per], wanted[per] + 1)
            )
            assert (at, above) == ([], [(per, wanted[per])])
        _recorded(profile, key, wanted)

    return check


def both(*checks: Check) -> Check:
    """All of these checks."""

    def check(example: Example) -> None:
        for one in checks:
            one(example)

    return check


def _recorded(profile: str, component: Component, wanted: dict[str, float]) -> None:
    """Check that the rules have these limits of a component, and no others of these sorts."""
    exported = next((alias for alias, of in ALIASES.items() if of == profile), profile)
    series, label = LEVEL_SERIES[component.resource]
    if component.resource == "gpu_memory":
        series = "trainer_gpu_memory_allocated_bytes"
    name = component.name or "any"
    text = f'trainer_limit_profile{{profile="{exported}"}} 1\n{series}{{{label}="{name}"}} 1\n'
    selector = f'{{resource="{component.resource}",component="{name}"}}'
    levels = {f'{{severity="{key}"}}': value for key, value in wanted.items() if key in SEVERITIES}
    growth = {f'{{per="{key}"}}': value for key, value in wanted.items() if key not in SEVERITIES}
    expected = {}
    if levels:
        severities = "|".join(key for key in wanted if key in SEVERITIES)
        limits = f'job:trainer_limit:default{selector[:-1]},severity=~"{severities}"}}'
        expected[f"sum by (severity) ({limits})"] = levels
    if growth:
        expected[f"max by (per) (job:trainer_growth_limit:default{selector})"] = growth
        expected[f"min by (per) (job:trainer_growth_limit:default{selector})"] = growth
    evaluate(text, expected)
