import re

from heapwatch_viewer.model import Panel, Target
from heapwatch_viewer.panels import RENDERERS, Answers
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

WINDOW = Window(0, 300, 60)


def rendered(kind, series, *, options=None, defaults=None, marks=()):
    raw = {
        "type": kind,
        "options": options or {},
        "fieldConfig": {"defaults": defaults or {}, "overrides": []},
    }
    target = Target("x", "", "A", instant=kind == "table", least_step=0)
    panel = Panel(1, kind, "title", "", (0, 0, 12, 8), (target,), raw)
    return RENDERERS[kind](Answers(panel, series, WINDOW, lambda address, values: address, list(marks)))


def test_a_missing_scrape_is_a_gap_and_not_a_line_across():
    series = Series({}, [(0, 1.0), (60, 2.0), (240, 3.0)], name="memory")
    (line,) = rendered("timeseries", [series]).options["series"]
    assert line["data"] == [[0, 1.0], [60_000, 2.0], [120_000, None], [240_000, 3.0]]


def test_two_units_get_two_axes():
    custom = [
        {
            "matcher": {"id": "byName", "options": "cpu"},
            "properties": [{"id": "unit", "value": "percentunit"}],
        }
    ]
    raw = {"type": "timeseries", "fieldConfig": {"defaults": {"unit": "decbytes"}, "overrides": custom}}
    target = Target("x", "", "A", instant=False, least_step=0)
    panel = Panel(1, "timeseries", "t", "", (0, 0, 12, 8), (target,), raw)
    series = [Series({}, [(0, 1.0)], name="memory"), Series({}, [(0, 0.5)], name="cpu")]
    chart = RENDERERS["timeseries"](Answers(panel, series, WINDOW, lambda address, values: address))
    assert [line["yAxisIndex"] for line in chart.options["series"]] == [0, 1]
    assert len(chart.units) == 2


def test_annotations_are_drawn():
    mark = Mark(60, 180, "TrainerLeak: memory", "#f00")
    chart = rendered("timeseries", [Series({}, [(0, 1.0)], name="memory")], marks=[mark])
    assert chart.options["series"][0]["markLine"]["data"][0]["name"] == "TrainerLeak: memory"
    assert chart.options["series"][0]["markArea"]["data"][0][1] == {"xAxis": 180_000}


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
    chart = rendered("state-timeline", [Series({}, points, name="walker")])
    assert [block["value"][1:] for block in chart.options["series"][0]["data"]] == [
        [0, 120_000],
        [120_000, 180_000],
        [240_000, 300_000],
    ]


def test_cumulative_buckets_are_taken_apart():
    series = [Series({"le": "1"}, [(0, 2.0)]), Series({"le": "+Inf"}, [(0, 5.0)])]
    cells = rendered("heatmap", series).options["series"][0]["data"]
    assert cells == [[0, 0, 2.0], [0, 1, 3.0]]


def test_a_table_cell_is_escaped():
    body = rendered("table", [Series({"instance": "<script>"}, [(0, 1.0)])]).body
    assert "<script>" not in body
    assert "&lt;script&gt;" in body


def test_bars_stay_inside_their_track():
    body = rendered("bargauge", [Series({}, [(0, 5.0)], name="fill")], defaults={"max": 1, "min": 0}).body
    assert "width:100.0%" in body
