import re

import pytest

from heapwatch_viewer.model import Panel, PanelQuery
from heapwatch_viewer.panels import RENDERERS, Answers
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

WINDOW = Window(0, 300, 60)


def rendered(kind, series, *, options=None, defaults=None, overrides=(), marks=()):
    raw = {
        "type": kind,
        "options": options or {},
        "fieldConfig": {"defaults": defaults or {}, "overrides": list(overrides)},
    }
    target = PanelQuery("x", "", "A", instant=kind == "table", least_step=0)
    panel = Panel(1, kind, "title", "", (0, 0, 12, 8), (target,), raw)
    return RENDERERS[kind](Answers(panel, series, WINDOW, lambda address, values: address, list(marks)))


def test_a_missing_scrape_is_a_gap_and_not_a_line_across():
    series = Series({}, [(0, 1.0), (60, 2.0), (240, 3.0)], name="memory", step=60)
    (line,) = rendered("timeseries", [series]).options["series"]
    assert line["data"] == [[0, 1.0], [60_000, 2.0], [120_000, None], [240_000, 3.0]]


@pytest.mark.parametrize("text", ["", " ", "0"])
def test_a_text_that_is_a_number_is_drawn_in_place_of_missing_values_as_grafana_does(text):
    series = Series({}, [(60, 2.0), (240, 3.0)], name="memory", step=60)
    (line,) = rendered("timeseries", [series], defaults={"noValue": text}).options["series"]
    assert [value for _, value in line["data"]] == [0, 2.0, 0, 0, 3.0, 0]


@pytest.mark.parametrize("text", ["\u200b", "No trainer now"])
def test_a_text_that_is_no_number_leaves_missing_values_missing(text):
    series = Series({}, [(60, 2.0), (240, 3.0)], name="memory", step=60)
    (line,) = rendered("timeseries", [series], defaults={"noValue": text}).options["series"]
    assert line["data"] == [[60_000, 2.0], [120_000, None], [240_000, 3.0]]


def test_two_units_get_two_axes():
    custom = [
        {
            "matcher": {"id": "byName", "options": "cpu"},
            "properties": [{"id": "unit", "value": "percentunit"}],
        }
    ]
    raw = {"type": "timeseries", "fieldConfig": {"defaults": {"unit": "decbytes"}, "overrides": custom}}
    target = PanelQuery("x", "", "A", instant=False, least_step=0)
    panel = Panel(1, "timeseries", "t", "", (0, 0, 12, 8), (target,), raw)
    series = [Series({}, [(0, 1.0)], name="memory"), Series({}, [(0, 0.5)], name="cpu")]
    chart = RENDERERS["timeseries"](Answers(panel, series, WINDOW, lambda address, values: address))
    assert [line["yAxisIndex"] for line in chart.options["series"]] == [0, 1]
    assert len(chart.units) == 2


def test_members_of_a_stack_have_the_same_moments():
    stacked = {"custom": {"stacking": {"mode": "normal"}}}
    series = [
        Series({}, [(0, 1.0), (120, 3.0)], name="helped", step=60),
        Series({}, [(120, 2.0)], name="failed", step=60),
    ]
    lines = rendered("timeseries", series, defaults=stacked).options["series"]
    assert lines[0]["data"] == [[0, 1.0], [60_000, None], [120_000, 3.0]]
    assert lines[1]["data"] == [[0, None], [60_000, None], [120_000, 2.0]]


def test_annotations_are_drawn():
    mark = Mark(60, 180, "TrainerLeak: memory", "#f00")
    chart = rendered("timeseries", [Series({}, [(0, 1.0)], name="memory")], marks=[mark])
    assert chart.options["series"][0]["markLine"]["data"][0]["name"] == "TrainerLeak: memory"
    assert chart.options["series"][0]["markArea"]["data"][0][1] == {"xAxis": 180_000}


def test_overlapping_regions_darken_each_other_and_have_a_line_at_each_end_in_sight():
    marks = [Mark(0, 120, "one", "#f00"), Mark(60, 240, "two", "#f00"), Mark(60, 60, "cleanup", "#0f0")]
    line = rendered("timeseries", [Series({}, [(0, 1.0)], name="memory")], marks=marks).options["series"][0]
    regions = [(area[0]["xAxis"], area[1]["xAxis"]) for area in line["markArea"]["data"]]
    assert regions == [(0, 120_000), (60_000, 240_000)]
    drawn = sorted((mark["xAxis"], mark["name"]) for mark in line["markLine"]["data"])
    assert drawn == [(60_000, "cleanup"), (60_000, "two"), (120_000, "one"), (240_000, "two")]


def test_a_timeline_by_thresholds_shows_their_ranges_and_no_mappings():
    steps = [{"value": None, "color": "#8e8e8e"}, {"value": 2, "color": "#d55e00"}]
    mapping = {"type": "value", "options": {"4": {"text": "leak", "color": "#d55e00", "index": 0}}}
    defaults = {"thresholds": {"steps": steps}, "mappings": [mapping]}
    series = [Series({}, [(0, 1.0), (60, 4.0)], name="walker", step=60)]

    def shown(mode):
        chart = rendered("state-timeline", series, defaults=defaults | {"color": {"mode": mode}})
        return [block["name"] for block in chart.options["series"][0]["data"]]

    assert shown("thresholds") == ["< 2", "2+"]
    assert shown("fixed") == ["1", "leak"]


def test_a_single_bar_has_a_name_only_where_one_was_set():
    series = Series({"component": "replay"}, [(0, 0.5)], name="replay")
    assert "replay" not in rendered("bargauge", [series]).body
    assert "replay" in rendered("bargauge", [series, series]).body
    named = {"displayName": "${__field.labels.component}"}
    assert "replay" in rendered("bargauge", [series], defaults=named).body


def test_a_limit_that_is_only_told_stands_in_the_legend():
    hidden = {
        "matcher": {"id": "byRegexp", "options": "/off the scale$/"},
        "properties": [{"id": "custom.hideFrom", "value": {"viz": True, "legend": False, "tooltip": True}}],
    }
    series = [
        Series({}, [(0, 3.0)], name="memory"),
        Series({}, [(0, 5e9)], name="growth limit, off the scale"),
    ]
    legend = {"displayMode": "list", "calcs": ["lastNotNull"]}
    chart = rendered("timeseries", series, options={"legend": legend}, overrides=[hidden])
    assert [line["name"] for line in chart.options["series"]] == ["memory"]
    assert re.search("hidden-series.*off the scale.*5000000000", chart.legend)


def test_sparklines_are_refused():
    with pytest.raises(ValueError, match="sparkline"):
        rendered("stat", [Series({}, [(0, 3.0)], name="memory")], options={"graphMode": "area"})


def test_the_legend_is_escaped_and_has_its_values():
    legend = {"displayMode": "table", "calcs": ["lastNotNull", "max"], "showLegend": True}
    chart = rendered(
        "timeseries", [Series({}, [(0, 3.0), (60, 1.0)], name="<b>x")], options={"legend": legend}
    )
    assert "&lt;b&gt;x" in chart.legend
    assert re.findall(r"<td>(\d)</td>", chart.legend) == ["1", "3"]


def test_a_stat_without_data_says_so_instead_of_zero():
    assert "No trainer yet" in rendered("stat", [], defaults={"noValue": "No trainer yet"}).body


def test_states_are_joined_into_blocks_and_broken_by_gaps():
    points = [(0, 1.0), (60, 1.0), (120, 4.0), (240, 4.0)]
    chart = rendered("state-timeline", [Series({}, points, name="walker", step=60)])
    assert [block["value"][1:] for block in chart.options["series"][0]["data"]] == [
        [0, 120_000],
        [120_000, 180_000],
        [240_000, 300_000],
    ]


def test_cumulative_buckets_are_taken_apart():
    series = [Series({"le": "1"}, [(0, 2.0)]), Series({"le": "+Inf"}, [(0, 5.0)])]
    cells = rendered("heatmap", series).options["series"][0]["data"]
    assert cells == [[0, 0, 2.0], [0, 1, 3.0]]


def test_a_path_in_a_cell_that_wraps_breaks_between_its_parts():
    series = Series({"what": "trainer.replay<x>.items"}, [(0, 1.0)])
    cell = {"matcher": {"id": "byName", "options": "what"}, "properties": [
        {"id": "custom.cellOptions", "value": {"type": "auto", "wrapText": True}}]}  # fmt: skip
    assert "trainer.<wbr>replay&lt;x&gt;.<wbr>items" in rendered("table", [series], overrides=[cell]).body


def test_a_table_cell_is_escaped():
    body = rendered("table", [Series({"instance": "<script>"}, [(0, 1.0)])]).body
    assert "<script>" not in body
    assert "&lt;script&gt;" in body


def test_bars_stay_inside_their_track():
    body = rendered("bargauge", [Series({}, [(0, 5.0)], name="fill")], defaults={"max": 1, "min": 0}).body
    assert "width:100.0%" in body


def test_a_label_is_coloured_by_its_mapping():
    mapping = {"type": "value", "options": {"critical": {"text": "critical", "color": "#abcdef"}}}
    properties = [
        {"id": "mappings", "value": [mapping]},
        {"id": "custom.cellOptions", "value": {"type": "color-text"}},
    ]
    override = {"matcher": {"id": "byName", "options": "severity"}, "properties": properties}
    body = rendered("table", [Series({"severity": "critical"}, [(0, 1.0)])], overrides=[override]).body
    assert re.search(r'color-mix\([^"]*#abcdef[^"]*">critical</td>', body)


def test_the_worst_row_comes_first_and_missing_values_last():
    values = {"b": 1.0, "c": float("nan"), "a": 4.0}
    series = [Series({"name": name}, [(0, value)]) for name, value in values.items()]
    body = rendered("table", series, options={"sortBy": [{"displayName": "Value", "desc": True}]}).body
    assert re.findall(r">([abc])</td>", body) == ["a", "b", "c"]


def test_an_alert_is_linked_to_its_runbook():
    body = rendered("table", [Series({"alertname": "TrainerLeak"}, [(0, 1.0)])]).body
    assert '<a href="/docs/runbooks/TrainerLeak.md"' in body
