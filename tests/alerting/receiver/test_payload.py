import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from heapwatch_receiver.payload import Notification
from tests.support.alerting.harness import alert, notification
from tests.support.alerting.payloads import notifications


def parse(payload: object) -> Notification:
    return Notification.model_validate_json(json.dumps(payload))


def test_alertmanagers_own_form_is_read():
    (read,) = parse(notification(alert("127.0.0.1:7777"))).alerts
    assert read.startsAt.isoformat() == "2026-01-01T00:00:00.123456+00:00"
    assert read.ends_at is None


def test_the_start_is_the_same_in_any_time_zone():
    first = alert("t", startsAt="2026-01-01T02:00:00+02:00", endsAt="2026-01-01T02:00:01+02:00")
    second = alert("t", startsAt="2026-01-01T00:00:00.000Z", endsAt="2026-01-01T00:00:01Z")
    read = parse(notification(first, second)).alerts
    assert read[0].startsAt.isoformat() == read[1].startsAt.isoformat()
    assert read[0].ends_at == read[1].ends_at == 1767225601


@pytest.mark.parametrize("when", ["9999-12-31T23:59:59.9-01:00", "0001-01-01T00:00:00+01:00"])
def test_a_time_that_no_calendar_has_is_refused(when):
    with pytest.raises(ValidationError, match="outside the years"):
        parse(notification(alert("t", startsAt=when)))


@pytest.mark.slow
@given(st.none() | st.integers() | st.lists(st.text()) | notifications())
def test_any_payload_is_read_or_refused(payload):
    try:
        parse(payload)
    except ValidationError:
        return
