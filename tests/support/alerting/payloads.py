"""Payloads that are wrong, and a strategy for payloads that are almost or quite right."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.support.alerting.harness import alert, notification


def _json(**changes: object) -> bytes:
    return json.dumps({**notification(alert("127.0.0.1:1")), **changes}).encode()


def _one(**changes: object) -> bytes:
    return _json(alerts=[{**alert("127.0.0.1:1"), **changes}])


_AS_JSON: dict[str, str | bytes] = {"Content-Type": "application/json"}
# name, the status it must get, headers, body; for a body limit of 1 MiB
MALFORMED: list[tuple[str, int, dict[str, str | bytes], bytes]] = [
    ("empty", 400, _AS_JSON, b""),
    ("not JSON", 400, _AS_JSON, b"{"),
    ("not UTF-8", 400, _AS_JSON, b'{"version": "\xff"}'),
    ("half a surrogate", 400, _AS_JSON, _json().replace(b'"trainer"', b'"\\ud800"')),
    ("a list", 400, _AS_JSON, b"[]"),
    ("100 000 deep", 400, _AS_JSON, b"[" * 100_000),
    ("version 3", 400, _AS_JSON, _json(version="3")),
    ("no alerts", 400, _AS_JSON, b'{"version": "4"}'),
    ("status unknown", 400, _AS_JSON, _one(status="burning")),
    ("no time zone", 400, _AS_JSON, _one(startsAt="2026-01-01T00:00:00")),
    ("year 10000", 400, _AS_JSON, _one(startsAt="10000-01-01T00:00:00Z")),
    ("no fingerprint", 400, _AS_JSON, _one(fingerprint="")),
    ("fingerprint of SQL", 400, _AS_JSON, _one(fingerprint="' OR 1=1 --")),
    ("label without a name", 400, _AS_JSON, _one(labels={"": "c"})),
    ("a label of 5 kB", 400, _AS_JSON, _one(labels={"a": "x" * 5000})),
    ("over 1 MiB", 413, _AS_JSON, b" " * (2 << 20)),
    ("no content type", 415, {"Content-Type": ""}, _json()),
    ("a form", 415, {"Content-Type": "application/x-www-form-urlencoded"}, _json()),
    ("wrong token", 401, {**_AS_JSON, "Authorization": "Bearer wrong"}, _json()),
    ("no token", 401, {**_AS_JSON, "Authorization": ""}, _json()),
    ("token of other letters", 401, {**_AS_JSON, "Authorization": b"Bearer \xff\xfe"}, _json()),
]

_names = st.sampled_from(["alertname", "job", "instance", "severity", "action", "component"]) | st.text(
    max_size=8
)
_labels = st.dictionaries(_names, st.text(max_size=20), max_size=8)
_times = st.datetimes(timezones=st.timezones()).map(lambda time: time.isoformat()) | st.text(max_size=30)
_alerts = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["firing", "resolved", "other"]),
        "labels": _labels,
        "annotations": st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3),
        "startsAt": _times,
        "endsAt": _times,
        "fingerprint": st.from_regex(r"[0-9a-f]{1,16}", fullmatch=True) | st.text(max_size=8),
    },
    optional={"generatorURL": st.text(), "extra": st.none() | st.integers()},
)


def notifications() -> st.SearchStrategy[dict[str, object]]:
    """Shaped like Alertmanager's, right in most places."""
    return st.lists(_alerts, max_size=3).map(lambda alerts: notification(*alerts))
