import pytest

from heapwatch_viewer.model import Panel, PanelQuery
from heapwatch_viewer.prometheus import Series
from heapwatch_viewer.transformations import tabulate


def panel(transformations):
    targets = tuple(PanelQuery("x", "", ref, instant=True, least_step=0) for ref in "AB")
    return Panel(1, "table", "t", "", (0, 0, 12, 8), targets, {"transformations": transformations})


SERIES = [
    Series({"instance": "one"}, [(1, 10.0)], ref_id="A"),
    Series({"instance": "two"}, [(1, 20.0)], ref_id="A"),
    Series({"instance": "two"}, [(1, 0.5)], ref_id="B"),
]


def test_merge_joins_rows_that_agree_in_their_labels():
    table = tabulate(panel([{"id": "merge", "options": {}}]), SERIES)
    assert [(row["instance"], row.get("Value #A"), row.get("Value #B")) for row in table.rows] == [
        ("one", 10.0, None),
        ("two", 20.0, 0.5),
    ]


def test_join_by_field_keeps_rows_that_only_one_query_knows():
    table = tabulate(
        panel([{"id": "joinByField", "options": {"byField": "instance", "mode": "outer"}}]), SERIES
    )
    assert {row["instance"]: row.get("Value #B") for row in table.rows} == {"one": None, "two": 0.5}


def test_organize_leaves_out_orders_and_renames():
    organize = {
        "excludeByName": {"Time": True},
        "indexByName": {"Value #A": 0, "instance": 1},
        "renameByName": {"Value #A": "memory"},
    }
    table = tabulate(panel([{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]), SERIES)
    assert table.columns[:2] == ["memory", "instance"]
    assert "Time" not in table.columns
    assert table.ref_ids["memory"] == "A"


def test_sort_puts_missing_values_last():
    sort = {"sort": [{"field": "Value #B", "desc": True}]}
    table = tabulate(panel([{"id": "merge", "options": {}}, {"id": "sortBy", "options": sort}]), SERIES)
    assert [row["instance"] for row in table.rows] == ["two", "one"]


def test_an_unknown_transformation_is_named():
    with pytest.raises(ValueError, match="histogram"):
        tabulate(panel([{"id": "histogram", "options": {}}]), SERIES)


def test_a_range_query_gives_a_row_a_moment_and_a_column_a_series():
    targets = (PanelQuery("x", "", "A", instant=False, least_step=0),)
    raw = {"transformations": [{"id": "joinByField", "options": {"byField": "Time", "mode": "outer"}}]}
    series = [
        Series({}, [(60, 1.0), (120, 2.0)], name="evaluate"),
        Series({}, [(120, 3.0)], name="train"),
    ]
    table = tabulate(Panel(1, "table", "t", "", (0, 0, 12, 8), targets, raw), series)
    assert table.columns == ["Time", "evaluate", "train"]
    assert [(row["evaluate"], row.get("train")) for row in table.rows] == [(1.0, None), (2.0, 3.0)]
