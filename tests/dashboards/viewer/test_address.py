from heapwatch_viewer.address import board_address, complete
from heapwatch_viewer.timerange import TimeRange

SPAN = TimeRange("now-1h", "now")
CHOSEN = {"instance": ("a:1", "b:2")}


def test_an_address_carries_the_whole_state():
    assert (
        board_address("heapwatch-world", SPAN, CHOSEN, "30s", "light")
        == "/d/heapwatch-world?from=now-1h&to=now"
        "&var-instance=a%3A1&var-instance=b%3A2&refresh=30s&theme=light"
    )


def test_references_in_an_address_are_filled_in_and_quoted():
    template = "/d/x?${__url_time_range}&var-one=${__data.fields.instance}&var-source=${datasource}"
    assert complete(template, {"__data.fields.instance": "c:3&x=1"}, SPAN, CHOSEN) == (
        "/d/x?from=now-1h&to=now&var-one=c%3A3%26x%3D1&var-source="
    )
