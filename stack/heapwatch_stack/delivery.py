"""Checks that an alert reaches the receiver through Alertmanager, which no health check of either shows."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from heapwatch_stack.errors import StackError
from heapwatch_stack.settings import Settings

# The heartbeat comes every minute. One this recent, since the last start, is sufficient.
RECENT_SECONDS = 90.0
PATIENCE = 30.0
LAST_HEARTBEAT = "heapwatch_receiver_last_watchdog_timestamp_seconds"
REJECTED = "heapwatch_receiver_requests_rejected_total"


def prove(settings: Settings, *, fresh: bool, patience: float = PATIENCE) -> None:
    """Wait until a heartbeat reaches the receiver; `fresh`: a service was started, so send a new one.

    Raises:
        StackError: it does not arrive; with the reason if the receiver knows it.

    """
    began = time.time()
    if not fresh and began - _last_heartbeat(settings) < RECENT_SECONDS:
        return
    _send(settings)
    while _last_heartbeat(settings) < began:
        if time.time() - began > patience:
            raise StackError(
                f"no alert travels from Alertmanager to the receiver{_reason(settings)}:"
                " heapwatch logs --service alertmanager"
            )
        time.sleep(0.2)


def _send(settings: Settings) -> None:
    """Post a heartbeat in a new group to Alertmanager: a group's first alert is sent at once."""
    now = datetime.now(timezone.utc)
    labels = {
        "alertname": settings.environment.get("HEAPWATCH_RECEIVER_WATCHDOG_ALERTNAME") or "Watchdog",
        "component": "watchdog",
        "instance": f"heapwatch up {now:%Y-%m-%dT%H:%M:%S.%f}",
        "kind": "health",
        "severity": "warning",
    }
    alert = {"labels": labels, "endsAt": (now + timedelta(minutes=1)).isoformat()}
    address = settings.url(settings.ports.alertmanager) + "/api/v2/alerts"
    try:
        httpx.post(address, json=[alert], timeout=10, trust_env=False).raise_for_status()
    except httpx.HTTPError as error:
        raise StackError(f"Alertmanager takes no alert: {error}") from error


def _last_heartbeat(settings: Settings) -> float:
    return max((sample.value for sample in _receiver(settings) if sample.name == LAST_HEARTBEAT), default=0.0)


def _reason(settings: Settings) -> str:
    codes = [s.labels["code"] for s in _receiver(settings) if s.name == REJECTED and s.value > 0]
    return f" (the receiver answers {', '.join(sorted(codes))})" if codes else ""


def _receiver(settings: Settings) -> list[Any]:
    try:
        answer = httpx.get(settings.url(settings.ports.receiver) + "/metrics", timeout=5, trust_env=False)
        answer.raise_for_status()
        return [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
    except (httpx.HTTPError, ValueError):
        return []
