import re

from heapwatch_viewer.model import Panel, PanelQuery
from heapwatch_viewer.panels import RENDERERS, Answers
from heapwatch_viewer.panels.base import Mark
from heapwatch_viewer.panels.table import tabulate
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.timerange import Window

WINDOW = Window(0, 300, 60)


def panel(kind, raw, *, refs="A"):
    targets = tuple(PanelQuery("x", "", ref, instant=True, least_step=0) for ref in refs)
    return Panel(1, kind, "title", "", (0, 0, 12, 8), targets, raw)


def rendered(kind, series, *, options=None, defaults=None, overrides=(), marks=()):
    configuration = {"defaults": defaults or {}, "overrides": list(overrides)}
    shown = panel(kind, {"options": options or {}, "fieldConfig": configuration})
    return RENDERERS[kind](Answers(shown, series, WINDOW, lambda address, values: address, list(marks)))


def override(name, **properties):
    items = [{"id": key.replace("__", "."), "value": value} for key, value in properties.items()]
    return {"matcher": {"id": "byName", "options": name}, "properties": items}


def test_a_missing_scrape_is_a_gap_and_not_a_line_across():
    series = Series({}, [(0, 1.0), (60, 2.0), (240, 3.0)], name="memory", step=60)
    (line,) = rendered("timeseries", [series]).options["series"]
    assert line["data"] == [[0, 1.0], [60_000, 2.0], [120_000, None], [240_000, 3.0]]


def test_members_of_a_stack_have_the_same_moments():
    stacked = {"custom": {"stacking": {"mode": "normal"}}}
    series = [
        Series({}, [(0, 1.0), (120, 3.0)], name="helped", step=60),
        Series({}, [(120, 2.0)], name="failed", step=60),
    ]
    lines = rendered("timeseries", series, defaults=stacked).options["series"]
    assert lines[0]["data"] == [[0, 1.0], [60_000, None], [120_000, 3.0]]
    assert lines[1]["data"] == [[0, None], [60_000, None], [120_000, 2.0]]


def test_marks_of_one_moment_and_colour_share_a_line():
    marks = [
        Mark(60, "two", "#f00"),
        Mark(60, "one", "#f00"),
        Mark(60, "cleanup", "#0f0"),
        Mark(900, "x", "#f00"),
    ]
    line = rendered("timeseries", [Series({}, [(0, 1.0)], name="memory")], marks=marks).options["series"][0]
    drawn = [(mark["xAxis"], mark["name"]) for mark in line["markLine"]["data"]]
    assert drawn == [(60_000, "cleanup"), (60_000, "one, two")]


def test_the_legend_is_escaped_and_has_its_values():
    series = Series({}, [(0, 3.0), (60, 1.0)], name="<b>x")
    chart = rendered("timeseries", [series], options={"legend": {"calcs": ["lastNotNull", "max"]}})
    assert "&lt;b&gt;x" in chart.legend
    assert re.findall(r"<td>(.+?)</td>", chart.legend) == ["Last: 1", "Max: 3"]


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


def test_a_path_in_a_cell_that_wraps_is_escaped_and_breaks_between_its_parts():
    series = Series({"what": "trainer.replay<x>.items"}, [(0, 1.0)])
    cell = override("what", custom__cellOptions={"type": "auto", "wrapText": True})
    assert "trainer.<wbr>replay&lt;x&gt;.<wbr>items" in rendered("table", [series], overrides=[cell]).body


def test_a_label_is_coloured_by_its_mapping():
    mapping = {"type": "value", "options": {"critical": {"text": "critical", "color": "#abcdef"}}}
    cell = override("severity", mappings=[mapping], custom__cellOptions={"type": "color-text"})
    body = rendered("table", [Series({"severity": "critical"}, [(0, 1.0)])], overrides=[cell]).body
    assert re.search(r'color-mix\([^"]*#abcdef[^"]*">critical</td>', body)


def test_the_worst_row_comes_first_and_missing_values_last():
    values = {"b": 1.0, "c": float("nan"), "a": 4.0}
    series = [Series({"name": name}, [(0, value)]) for name, value in values.items()]
    body = rendered("table", series, options={"sortBy": [{"displayName": "Value", "desc": True}]}).body
    assert re.findall(r">([abc])</td>", body) == ["a", "b", "c"]


SERIES = [
    Series({"instance": "one"}, [(1, 10.0)], ref_id="A"),
    Series({"instance": "two"}, [(1, 20.0)], ref_id="A"),
    Series({"instance": "two"}, [(1, 0.5)], ref_id="B"),
]
MERGE = {"id": "merge", "options": {}}


def transformed(*steps):
    return tabulate(panel("table", {"transformations": steps}, refs="AB"), SERIES)


def test_merge_joins_rows_that_agree_in_their_labels():
    rows = transformed(MERGE).rows
    assert [(row["instance"], row.get("Value #A"), row.get("Value #B")) for row in rows] == [
        ("one", 10.0, None),
        ("two", 20.0, 0.5),
    ]


def test_organize_leaves_out_orders_and_renames():
    organize = {
        "excludeByName": {"Value #B": True},
        "indexByName": {"Value #A": 0, "instance": 1},
        "renameByName": {"Value #A": "memory"},
    }
    table = transformed(MERGE, {"id": "organize", "options": organize})
    assert table.columns == ["memory", "instance"]
    assert table.ref_ids["memory"] == "A"
