import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from heapwatch_receiver.payload import Notification
from tests.alerting.harness import alert, notification
from tests.alerting.payloads import notifications


def parse(payload: object) -> Notification:
    return Notification.model_validate_json(json.dumps(payload))


def test_alertmanagers_own_form_is_read():
    (read,) = parse(notification(alert("127.0.0.1:7777"))).alerts
    assert read.starts_at == 1767225600_123456
    assert read.ends_at is None


def test_the_start_is_the_same_in_any_time_zone():
    first = alert("t", startsAt="2026-01-01T02:00:00+02:00")
    second = alert("t", startsAt="2026-01-01T00:00:00.000Z")
    read = parse(notification(first, second)).alerts
    assert read[0].starts_at == read[1].starts_at


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(anything | notifications())
def test_any_payload_is_read_or_refused(payload):
    try:
        read = parse(payload)
    except ValidationError:
        return
    assert all(-(2**63) < one.starts_at < 2**63 for one in read.alerts)
