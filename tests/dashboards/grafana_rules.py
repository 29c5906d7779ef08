"""What Grafana draws otherwise than it was meant: one rule a mistake, for `test_grafana_rules.py`.

Each was seen in Grafana's own front end, or read in its source. A rule is given a dashboard's JSON and yields
what is wrong in it.
"""

import re
from collections.abc import Callable, Iterator

from heapwatch_dashboards import colors
from tests.dashboards.documents import Json, panels

Rule = Callable[[Json], Iterator[str]]

# What fits below the bars at the top of a window of 1440 by 900, in cells of 30 pixels and gaps of 8.
FIRST_SCREEN_CELLS = 20
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)  # as JavaScript reads one
COLORS_OF_NOTHING = {colors.UNKNOWN, colors.PLAIN}


def _fields(panel: Json) -> Json:
    defaults: Json = panel["fieldConfig"]["defaults"]
    return defaults


def _of(document: Json, *kinds: str) -> Iterator[Json]:
    yield from (panel for panel in panels(document) if panel["type"] in kinds)


def _overridden(panel: Json, name: str) -> list[Json]:
    """The values of a property in the panel's overrides, with the matcher of each."""
    return [
        {"matcher": override["matcher"], "value": item["value"]}
        for override in panel["fieldConfig"]["overrides"]
        for item in override["properties"]
        if item["id"] == name
    ]


def missing_values_have_no_colour_of_a_verdict(document: Json) -> Iterator[str]:
    """A missing value has the lowest colour of the thresholds: it must say nothing."""
    for panel in _of(document, "stat", "table"):
        chosen = [_fields(panel)["thresholds"], *(e["value"] for e in _overridden(panel, "thresholds"))]
        for color in {thresholds["steps"][0]["color"] for thresholds in chosen} - COLORS_OF_NOTHING:
            yield f"{panel['title']}: a missing value is {color}"


def empty_texts_stay_off_axes(document: Json) -> Iterator[str]:
    """A field's `noValue` is also written at axis ticks that have no value; the panel's is not."""
    for panel in _of(document, "timeseries"):
        reset = [
            entry
            for entry in _overridden(panel, "noValue")
            if entry["matcher"] == {"id": "byRegexp", "options": "/.*/"}
            and not entry["value"].strip("\u200b")
        ]
        if _fields(panel).get("noValue") and not reset:
            yield f"{panel['title']}: {_fields(panel)['noValue']!r} would stand between its ticks"


def missing_data_stay_missing(document: Json) -> Iterator[str]:
    """Missing values become `Number(noValue)` where that is a number: 0 of the empty text."""
    for panel in _of(document, "timeseries"):
        reset = [entry["value"] for entry in _overridden(panel, "noValue")]
        for text in reset or [_fields(panel).get("noValue", "no text")]:
            if not text.strip() or _NUMBER.fullmatch(text.strip()):
                yield f"{panel['title']}: {text!r} is drawn as a number in place of missing data"


def annotations_are_moments(document: Json) -> Iterator[str]:
    """Samples of one event in consecutive steps are one filled region."""
    for annotation in document["annotations"]["list"]:
        if not annotation["useValueForTime"] and "offset $__interval" not in annotation["expr"]:
            yield f"{annotation['name']}: fills the time for which it lasts"


def annotations_are_few(document: Json) -> Iterator[str]:
    """Of alerts only leaks and critical ones are marked until more are switched on."""
    for annotation in document["annotations"]["list"]:
        about_alerts = re.search(r"ALERTS\{[^}]*\}", annotation["expr"])
        narrowed = re.search(r"kind=\"leak\"|severity=\"critical\"", annotation["expr"].split(" unless ")[0])
        if about_alerts and annotation["enable"] and not narrowed:
            yield f"{annotation['name']}: marks every alert from the start"


def annotations_are_filtered(document: Json) -> Iterator[str]:
    """Without a filter an annotation is drawn over every panel that has a time axis."""
    charts = {panel["id"] for panel in _of(document, "timeseries")}
    for annotation in document["annotations"]["list"]:
        chosen = set(annotation.get("filter", {}).get("ids", ()))
        if not chosen or not chosen <= charts:
            yield f"{annotation['name']}: is not narrowed to charts that it concerns"


def far_limits_do_not_set_the_scale(document: Json) -> Iterator[str]:
    """A limit far above the data makes the data a line at zero: drawn is only what is near."""
    for panel in _of(document, "timeseries"):
        for target in panel["targets"]:
            legend = target.get("legendFormat", "")
            if " limit" in legend and "[$__range" not in target["expr"]:
                yield f"{panel['title']}: {legend} is drawn however far it is"


def single_values_are_of_now(document: Json) -> Iterator[str]:
    """Over a range, the last value of a trainer that ended is still the last value."""
    for panel in _of(document, "stat", "table"):
        joined_by_time = any(step["id"] == "joinByField" for step in panel.get("transformations", ()))
        for target in panel["targets"]:
            if not target["instant"] and not joined_by_time:
                yield f"{panel['title']}: shows the last value of the range as if it were of now"


def forecasts_have_one_source(document: Json) -> Iterator[str]:
    """Stat, table and chart show the same: seconds, or why there is no forecast."""
    for panel in panels(document):
        for target in panel["targets"]:
            if "time_to_limit" in target["expr"] and "needed_minutes" not in target["expr"]:
                yield f"{panel['title']}: shows a forecast before it can be trusted"
        texts = [_fields(panel).get("mappings", []), *(e["value"] for e in _overridden(panel, "mappings"))]
        words = {
            option["text"]
            for mappings in texts
            for mapping in mappings
            for option in mapping["options"].values()
        }
        forecast = any("time_to_limit" in target["expr"] for target in panel["targets"])
        if forecast and panel["type"] in ("stat", "table") and "too early" not in words:
            yield f"{panel['title']}: has no word for a forecast that cannot be trusted yet"


def the_answer_is_seen_at_once(document: Json) -> Iterator[str]:
    """What answers a page's question, above its first heading, fits on a laptop's screen."""
    if not document["description"].endswith("?"):
        yield f"the page asks no question: {document['description']}"
    headings = [panel["gridPos"]["y"] for panel in document["panels"] if panel["type"] == "row"]
    if not headings or min(headings) > FIRST_SCREEN_CELLS:
        yield f"the answer takes {min(headings, default=None)} cells, {FIRST_SCREEN_CELLS} are seen"


RULES: list[Rule] = [
    missing_values_have_no_colour_of_a_verdict,
    empty_texts_stay_off_axes,
    missing_data_stay_missing,
    annotations_are_moments,
    annotations_are_few,
    annotations_are_filtered,
    far_limits_do_not_set_the_scale,
    single_values_are_of_now,
    forecasts_have_one_source,
    the_answer_is_seen_at_once,
]
