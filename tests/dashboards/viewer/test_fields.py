import pytest

from heapwatch_viewer.fields import color, field_for, number_of_text
from heapwatch_viewer.prometheus import Series

PANEL = {
    "fieldConfig": {
        "defaults": {
            "unit": "decbytes",
            "noValue": "not read",
            "color": {"mode": "thresholds"},
            "thresholds": {
                "mode": "absolute",
                "steps": [{"color": "green", "value": None}, {"color": "red", "value": 1e9}],
            },
            "custom": {"lineWidth": 1},
        },
        "overrides": [
            {
                "matcher": {"id": "byRegexp", "options": "/limit/"},
                "properties": [
                    {"id": "custom.lineStyle", "value": {"fill": "dash"}},
                    {"id": "color", "value": {"mode": "fixed", "fixedColor": "dark-red"}},
                ],
            },
            {
                "matcher": {"id": "byName", "options": "state"},
                "properties": [
                    {
                        "id": "mappings",
                        "value": [
                            {"type": "value", "options": {"4": {"text": "leak", "color": "red"}}},
                            {"type": "range", "options": {"from": 5, "to": None, "result": {"text": "down"}}},
                        ],
                    }
                ],
            },
        ],
    }
}


def shown(name):
    return field_for(PANEL, Series({}, [], name=name))


def test_thresholds_paint_and_units_write():
    field = shown("memory")
    assert field.text(5e8) == "500 MB"
    assert field.text(None) == "not read"
    assert field.paint(5e8) == color("green")
    assert field.paint(2e9) == color("red")


def test_overrides_reach_only_what_they_match():
    assert shown("critical limit").custom["lineStyle"] == {"fill": "dash"}
    assert shown("critical limit").color == color("dark-red")
    assert "lineStyle" not in shown("memory").custom


def test_mappings_give_text_and_colour():
    field = shown("state")
    assert (field.text(4.0), field.paint(4.0)) == ("leak", color("red"))
    assert field.text(7.0) == "down"


def test_shades_of_named_colours():
    assert color("dark-red") != color("red")
    assert color("#123456") == "#123456"


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", 0),
        (" \n", 0),
        ("0", 0),
        (" -1.5e3 ", -1500),
        (".5", 0.5),
        ("\u200b", None),
        ("-", None),
        ("nan", None),
    ],
)
def test_a_text_is_a_number_where_javascript_reads_one(text, number):
    assert number_of_text(text) == number


def test_no_text_is_no_number():
    assert number_of_text(None) is None
