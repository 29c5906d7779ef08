"""What Grafana draws otherwise than it was meant; each rule was seen in its front end or its source."""

from collections.abc import Callable, Iterator

import pytest

from heapwatch_dashboards import colors
from tests.dashboards.documents import DOCUMENTS, Json, panels

# What fits below the bars at the top of a window of 1440 by 900, in cells of 30 pixels and gaps of 8.
FIRST_SCREEN_CELLS = 20
COLORS_OF_NOTHING = {colors.UNKNOWN, colors.PLAIN}


def _of(document: Json, *kinds: str) -> Iterator[Json]:
    yield from (panel for panel in panels(document) if panel["type"] in kinds)


def _overridden(panel: Json, name: str) -> list[Json]:
    """The values of a property in the panel's overrides."""
    return [
        item["value"]
        for override in panel["fieldConfig"]["overrides"]
        for item in override["properties"]
        if item["id"] == name
    ]


def missing_values_have_no_colour_of_a_verdict(document: Json) -> Iterator[str]:
    """A missing value has the lowest colour of the thresholds: it must say nothing."""
    for panel in _of(document, "stat", "table"):
        chosen = [panel["fieldConfig"]["defaults"]["thresholds"], *_overridden(panel, "thresholds")]
        for color in {thresholds["steps"][0]["color"] for thresholds in chosen} - COLORS_OF_NOTHING:
            yield f"{panel['title']}: a missing value is {color}"


def empty_texts_stay_off_axes(document: Json) -> Iterator[str]:
    """A field's `noValue` is also written at ticks without a value; an empty one is drawn as the number 0."""
    for panel in _of(document, "timeseries"):
        if _overridden(panel, "noValue") != ["\u200b"]:
            yield f"{panel['title']}: its text without data would stand between its ticks"


def annotations_are_moments_on_charts(document: Json) -> Iterator[str]:
    """Samples of one event in consecutive steps are one region; without a filter it covers every panel."""
    charts = {panel["id"] for panel in _of(document, "timeseries")}
    for annotation in document["annotations"]["list"]:
        if not annotation["useValueForTime"] and "offset $__interval" not in annotation["expr"]:
            yield f"{annotation['name']}: fills the time for which it lasts"
        if not set(annotation["filter"]["ids"]) <= charts:
            yield f"{annotation['name']}: is not narrowed to charts"


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
        if not all(target["instant"] for target in panel["targets"]):
            yield f"{panel['title']}: shows the last value of the range as if it were of now"


def the_answer_is_seen_at_once(document: Json) -> Iterator[str]:
    """What answers a page's question, above its first heading, fits on a laptop's screen."""
    if not document["description"].endswith("?"):
        yield f"the page asks no question: {document['description']}"
    headings = [panel["gridPos"]["y"] for panel in document["panels"] if panel["type"] == "row"]
    if not headings or min(headings) > FIRST_SCREEN_CELLS:
        yield f"the answer takes {min(headings, default=None)} cells, {FIRST_SCREEN_CELLS} are seen"


RULES = [
    missing_values_have_no_colour_of_a_verdict,
    empty_texts_stay_off_axes,
    annotations_are_moments_on_charts,
    far_limits_do_not_set_the_scale,
    single_values_are_of_now,
    the_answer_is_seen_at_once,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_the_dashboard_makes_no_mistake(rule: Callable[[Json], Iterator[str]], document: Json) -> None:
    assert list(rule(document)) == []
