"""What a panel is: queries, field options, overrides, and the JSON they become.

grafanalib 0.7.1 still writes Grafana 6 shapes for some panels (`fieldOptions`) and for targets, so every type
goes through its generic panel, and the modern part (targets, `fieldConfig`, `options`) is written here.
"""

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from grafanalib import core

from .navigation import DATASOURCE
from .promql import living, named

Json = dict[str, Any]

# The shapes are those of this Grafana: without it, migrations would look for shapes of Grafana 6.
PLUGIN_VERSION = "10.0.0"

LEAST_FOR_TWO_VALUES = 16


class Unit(NamedTuple):
    """A Grafana unit, and how many decimals its numbers have (None: as many as the size asks for)."""

    name: str
    decimals: int | None = None

    def field(self) -> Json:
        """The unit as options of a field."""
        return {"unit": self.name} | ({} if self.decimals is None else {"decimals": self.decimals})


BYTES = Unit("decbytes", 1)
SECONDS = Unit("s", 1)
SHARE = Unit("percentunit", 0)
COUNT = Unit("short")
NUMBER = Unit("none")
PER_SECOND = Unit("cps")
AGO = Unit("dateTimeFromNow")


@dataclass(frozen=True)
class Query:
    """One PromQL query, over the range or at an `instant`; `interval` is the smallest step, `15s` say.

    With `{{trainer_name}}` in the legend the series are named by their trainers. `lives` leaves out those
    that ended before the range does.
    """

    expression: str
    legend: str = ""
    instant: bool = False
    format: str = "time_series"
    interval: str = ""
    lives: bool = False

    @property
    def asked(self) -> str:
        """The PromQL expression."""
        if self.lives:
            return living(self.expression)
        return named(self.expression) if "{{trainer_name}}" in self.legend else self.expression

    @property
    def display_name(self) -> str:
        """The legend as a display name: without one, Grafana leaves out the name of a single series."""
        return re.sub(r"\{\{(\w+)\}\}", r"${__field.labels.\1}", self.legend)

    def render(self, ref_id: str) -> Json:
        """The target of a panel."""
        return {
            "expr": self.asked,
            "format": self.format,
            "instant": self.instant,
            "range": not self.instant,
            "refId": ref_id,
            "datasource": DATASOURCE,
            "editorMode": "code",
            **({"legendFormat": self.legend} if self.legend else {}),
            **({"interval": self.interval} if self.interval else {}),
        }


@dataclass(frozen=True)
class Panel:
    """A panel without a position.

    `width` is in 24ths of the page (0: the rest of its line), `height` in units of 30 pixels.

    `empty` is its text when its queries find nothing. `marked`: alerts, cleanups and restarts are drawn over
    it.
    """

    kind: str
    title: str
    description: str
    queries: Sequence[Query] = ()
    defaults: Json = field(default_factory=dict)
    overrides: Sequence[Json] = ()
    options: Json = field(default_factory=dict)
    transformations: Sequence[Json] = ()
    empty: str = ""
    width: int = 0
    height: int = 8
    marked: bool = False
    legend_values: Sequence[str] = ()

    @property
    def identity(self) -> int:
        """The panel's id, from its title: links to it keep working when other panels are added or removed."""
        return identity(self.title)

    def render(self, place: core.GridPos) -> Json:
        """Grafana's JSON for the panel at this place of the grid."""
        panel = core.Panel(
            title=self.title,
            description=self.description,
            dataSource=DATASOURCE,
            targets=[query.render(chr(ord("A") + index)) for index, query in enumerate(self.queries)],
            transformations=list(self.transformations),
            gridPos=place,
            id=self.identity,
            maxDataPoints=None,
            editable=False,
        ).panel_json({"type": self.kind, "pluginVersion": PLUGIN_VERSION, "options": self.options})
        if self.legend_values:
            panel["options"] = {**self.options, "legend": _legend(place.w, self.legend_values)}
        overrides = [_NO_TEXT_ON_AXES, *self.overrides] if self.kind == "timeseries" else list(self.overrides)
        panel["fieldConfig"] = {"defaults": {**self.defaults, "noValue": self.empty}, "overrides": overrides}
        return dict(panel)


def _legend(width: int, values: Sequence[str]) -> Json:
    """A list below the chart: at the right it would leave no space for the chart on a phone."""
    shown = list(values if width >= LEAST_FOR_TWO_VALUES else values[:1])
    return {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": shown}


def identity(title: str) -> int:
    """A number that follows from the title alone."""
    return zlib.crc32(title.encode()) % 1_000_000 + 1


def override(name: str, **properties: Any) -> Json:
    """Properties of the field with this name; in keys `__` stands for the dot (`custom__lineWidth`)."""
    return _override({"id": "byName", "options": name}, properties)


def override_matching(pattern: str, **properties: Any) -> Json:
    """Properties of the fields whose names match a regular expression."""
    return _override({"id": "byRegexp", "options": f"/{pattern}/"}, properties)


def _override(matcher: Json, properties: Json) -> Json:
    return {
        "matcher": matcher,
        "properties": [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()],
    }


# Grafana writes a field's text for "no value" at axis ticks, too; an empty panel takes it from the defaults.
# A text that JavaScript reads as a number (the empty one is 0) would be drawn in place of missing data: this
# one is none, and has no width.
_NO_TEXT_ON_AXES = override_matching(".*", noValue="\u200b")


def fixed(color: str) -> Json:
    """A colour that does not depend on the value."""
    return {"mode": "fixed", "fixedColor": color}
