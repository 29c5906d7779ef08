from heapwatch_viewer.fields import field_for
from heapwatch_viewer.prometheus import Series

THRESHOLDS = {
    "mode": "absolute",
    "steps": [{"color": "#0f0", "value": None}, {"color": "#f00", "value": 1e9}],
}
LIMIT = [
    {"id": "custom.lineStyle", "value": {"fill": "dash"}},
    {"id": "color", "value": {"mode": "fixed", "fixedColor": "#d55e00"}},
]
MAPPINGS = [
    {"type": "value", "options": {"4": {"text": "leak", "color": "#f00"}, "1.1": {"text": "warm-up"}}}
]
PANEL = {
    "fieldConfig": {
        "defaults": {
            "unit": "decbytes",
            "noValue": "not read",
            "color": {"mode": "thresholds"},
            "thresholds": THRESHOLDS,
            "custom": {"lineWidth": 1},
        },
        "overrides": [
            {"matcher": {"id": "byRegexp", "options": "/limit/"}, "properties": LIMIT},
            {
                "matcher": {"id": "byName", "options": "state"},
                "properties": [{"id": "mappings", "value": MAPPINGS}],
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
    assert field.paint(5e8) == "#0f0"
    assert field.paint(2e9) == "#f00"


def test_overrides_reach_only_what_they_match():
    assert shown("critical limit").custom == {"lineWidth": 1, "lineStyle": {"fill": "dash"}}
    assert shown("critical limit").color == "#d55e00"
    assert shown("memory").custom == {"lineWidth": 1}


def test_mappings_give_text_and_colour():
    field = shown("state")
    assert (field.text(4.0), field.paint(4.0)) == ("leak", "#f00")
    assert field.text(1.1) == "warm-up"
