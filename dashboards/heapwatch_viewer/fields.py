"""How one series of a panel is to be shown: its unit, colour, thresholds and overrides."""

import re
from dataclasses import dataclass, field
from typing import Any

from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.units import Unit, unit_of, write

# Grafana's classic palette and named colours, as its documentation lists them.
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
NAMED = {
    "green": "#73BF69",
    "yellow": "#FADE2A",
    "orange": "#FF9830",
    "red": "#F2495C",
    "blue": "#5794F2",
    "purple": "#B877D9",
    "gray": "#8e8e8e",
    "grey": "#8e8e8e",
    "white": "#ffffff",
    "black": "#000000",
    "text": "var(--text)",
    "transparent": "transparent",
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"\$\{__field\.labels\.(\w+)\}")
_SHADES = {"dark": 0.7, "semi-dark": 0.85, "light": 1.15, "super-light": 1.35}


def color(name: str) -> str:
    """A CSS colour for one of Grafana's names (`dark-red`) or for a CSS colour itself."""
    if name in NAMED:
        return NAMED[name]
    shade, _, base = name.rpartition("-")
    if shade in _SHADES and base in NAMED:
        parts = [int(NAMED[base][start : start + 2], 16) for start in (1, 3, 5)]
        return "#" + "".join(f"{min(255, round(part * _SHADES[shade])):02x}" for part in parts)
    return name


def ink(paint: str) -> str:
    """A colour of the palette as text: mixed with the theme's own text colour, it can be read on both."""
    return f"color-mix(in srgb, {paint}, var(--text) 25%)"


@dataclass(frozen=True)
class Field:
    """Everything that decides how a value of one series is written and painted.

    `in_place_of_gaps`: a time series that has no value at a moment has this one, as in Grafana.
    """

    name: str
    unit: Unit
    decimals: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    no_value: str = "–"
    in_place_of_gaps: float | None = None
    color: str | None = None
    color_mode: str = ""
    steps: tuple[tuple[float, str], ...] = ()
    percentage_steps: bool = False
    mappings: tuple[dict[str, Any], ...] = ()
    links: tuple[dict[str, Any], ...] = ()
    custom: dict[str, Any] = field(default_factory=dict, compare=False)

    def text(self, value: float | str | None) -> str:
        """Write `value` for a person: by its mapping, else with its unit; a label as it is."""
        if value is None:
            return self.no_value
        mapped = self._mapped(value)
        if mapped and mapped.get("text"):
            return str(mapped["text"])
        if isinstance(value, str):
            return value
        return write(value, self.unit, self.decimals)

    def paint(self, value: float | str | None) -> str | None:
        """The colour that mappings or thresholds give `value`; None when nothing decides."""
        if value is None:
            return None
        mapped = self._mapped(value)
        if mapped and mapped.get("color"):
            return color(mapped["color"])
        if self.color_mode == "fixed" or isinstance(value, str):
            return self.color
        if self.percentage_steps:
            low, high = self.minimum or 0.0, self.maximum or 100.0
            value = (value - low) / (high - low) * 100 if high > low else 0.0
        painted = None
        for limit, name in self.steps:
            if value >= limit:
                painted = name
        return color(painted) if painted else None

    def _mapped(self, value: float | str) -> dict[str, Any] | None:
        for mapping in self.mappings:
            options = mapping["options"]
            if mapping["type"] == "value":
                key = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
                if key in options:
                    return dict(options[key])
            elif isinstance(value, str):
                continue
            elif mapping["type"] == "range":
                low = options["from"] if options.get("from") is not None else float("-inf")
                high = options["to"] if options.get("to") is not None else float("inf")
                if low <= value <= high:
                    return dict(options["result"])
            elif (
                mapping["type"] == "special"
                and options.get("match") in ("nan", "null+nan")
                and value != value
            ):
                return dict(options["result"])
        return None


def field_for(panel: dict[str, Any], series: Series) -> Field:
    """The field of `series` in `panel` (Grafana's JSON): the defaults, then every override that matches."""
    configuration = panel.get("fieldConfig", {})
    settings: dict[str, Any] = {"custom": {}}
    for key, value in configuration.get("defaults", {}).items():
        settings[key] = dict(value) if key == "custom" else value
    for override in configuration.get("overrides", ()):
        if _matches(override["matcher"], series):
            for item in override["properties"]:
                _apply(settings, item["id"], item.get("value"))
    paint = settings.get("color") or {}
    thresholds = settings.get("thresholds") or {}
    return Field(
        name=_display_name(settings.get("displayName") or "", series.labels) or series.name,
        unit=unit_of(settings.get("unit") or ""),
        decimals=settings.get("decimals"),
        minimum=settings.get("min"),
        maximum=settings.get("max"),
        no_value=settings.get("noValue") or "–",
        in_place_of_gaps=number_of_text(settings.get("noValue")),
        color=color(paint["fixedColor"])
        if paint.get("mode") == "fixed" and paint.get("fixedColor")
        else None,
        color_mode=paint.get("mode") or "",
        steps=tuple(
            (float("-inf") if step.get("value") in (None, "null") else float(step["value"]), step["color"])
            for step in thresholds.get("steps", ())
        ),
        percentage_steps=thresholds.get("mode") == "percentage",
        mappings=tuple(settings.get("mappings") or ()),
        links=tuple(settings.get("links") or ()),
        custom=settings["custom"],
    )


def number_of_text(text: str | None) -> float | None:
    """What JavaScript's `Number` makes of a text: 0 of a blank one, None where that is not a number."""
    stripped = None if text is None else text.strip()
    if stripped == "":
        return 0.0
    return float(stripped) if stripped and _NUMBER.fullmatch(stripped) else None


def _display_name(template: str, labels: dict[str, str]) -> str:
    return _LABEL.sub(lambda match: labels.get(match[1], ""), template)


def _matches(matcher: dict[str, Any], series: Series) -> bool:
    kind, wanted = matcher["id"], matcher.get("options")
    if kind == "byName":
        return bool(series.name == wanted)
    if kind == "byRegexp":
        return re.search(str(wanted).strip("/"), series.name) is not None
    if kind == "byFrameRefID":
        return bool(series.ref_id == wanted)
    return False


def _apply(settings: dict[str, Any], key: str, value: Any) -> None:
    if key.startswith("custom."):
        settings["custom"][key.removeprefix("custom.")] = value
    else:
        settings[key] = value
