"""Display options of one series of a panel: its unit, colour, thresholds and overrides."""

import re
from dataclasses import dataclass, field
from typing import Any

from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.units import UNITS, Unit, write

# Grafana's classic palette, as its documentation lists it.
PALETTE = (
    "#7EB26D",
    "#EAB839",
    "#6ED0E0",
    "#EF843C",
    "#E24D42",
    "#1F78C1",
    "#BA43A9",
    "#705DA0",
    "#508642",
    "#CCA300",
)


def ink(paint: str) -> str:
    """A colour of the palette as text: mixed with the theme's own text colour, it can be read on both."""
    return f"color-mix(in srgb, {paint}, var(--text) 25%)"


@dataclass(frozen=True)
class Field:
    """The options that decide the text and the colour of a value of one series.

    Attributes:
        mappings: text and colour of a value, by the value as it is written in JSON.

    """

    name: str
    unit: Unit
    decimals: int | None = None
    maximum: float | None = None
    no_value: str = "–"
    color: str | None = None
    color_mode: str = ""
    steps: tuple[tuple[float, str], ...] = ()
    mappings: dict[str, dict[str, Any]] = field(default_factory=dict, compare=False)
    links: tuple[dict[str, Any], ...] = ()
    custom: dict[str, Any] = field(default_factory=dict, compare=False)

    def text(self, value: float | str | None) -> str:
        """Write `value` for a person: by its mapping, else with its unit; a label as it is."""
        if value is None:
            return self.no_value
        text = self._mapped(value).get("text")
        if text:
            return str(text)
        return value if isinstance(value, str) else write(value, self.unit, self.decimals)

    def paint(self, value: float | str | None) -> str | None:
        """The colour that mappings or thresholds give `value`; None without one."""
        if value is None:
            return None
        color = self._mapped(value).get("color")
        if color:
            return str(color)
        if self.color_mode == "fixed" or isinstance(value, str):
            return self.color
        return next((color for limit, color in reversed(self.steps) if value >= limit), None)

    def _mapped(self, value: float | str) -> dict[str, Any]:
        key = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        return self.mappings.get(key, {})


def field_for(panel: dict[str, Any], series: Series) -> Field:
    """The field of `series` in `panel` (Grafana's JSON): the defaults, then every override that matches."""
    configuration = panel.get("fieldConfig", {})
    defaults = configuration.get("defaults", {})
    settings: dict[str, Any] = {**defaults, "custom": dict(defaults.get("custom", {}))}
    for override in configuration.get("overrides", ()):
        if _matches(override["matcher"], series.name):
            for item in override["properties"]:
                key = item["id"].removeprefix("custom.")
                (settings if key == item["id"] else settings["custom"])[key] = item.get("value")
    paint = settings.get("color") or {}
    thresholds = settings.get("thresholds") or {}
    mappings = settings.get("mappings") or []
    return Field(
        name=series.name,
        unit=UNITS[settings.get("unit", "none")],
        decimals=settings.get("decimals"),
        maximum=settings.get("max"),
        no_value=settings.get("noValue") or "–",
        color=paint.get("fixedColor") if paint.get("mode") == "fixed" else None,
        color_mode=paint.get("mode") or "",
        steps=tuple(
            (float("-inf") if step.get("value") is None else float(step["value"]), step["color"])
            for step in thresholds.get("steps", ())
        ),
        mappings={key: option for mapping in mappings for key, option in mapping["options"].items()},
        links=tuple(settings.get("links") or ()),
        custom=settings["custom"],
    )


def _matches(matcher: dict[str, Any], name: str) -> bool:
    if matcher["id"] == "byRegexp":
        return re.search(str(matcher["options"]).strip("/"), name) is not None
    return matcher["id"] == "byName" and bool(matcher["options"] == name)
