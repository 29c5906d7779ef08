"""Waits until services answer, Prometheus scrapes them, and an alert travels to the receiver."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.text.terminal import plain
from heapwatch_stack.errors import Say, StackError
from heapwatch_stack.settings import Endpoint, Settings

HEALTHY = "healthy"
# Importing torch may take minutes on a busy machine. A service that keeps ending is noticed much earlier.
PATIENCE = 600.0
DELIVERY_PATIENCE = 30.0
SCRAPE_PATIENCE = 90.0
LAST_HEARTBEAT = "heapwatch_receiver_last_watchdog_timestamp_seconds"
# No service of the stack speaks TLS, and to read all certificates takes 40 ms of computing.
_CLIENT = httpx.Client(trust_env=False, verify=False)


def condition(settings: Settings, endpoint: Endpoint) -> str:
    """`healthy`, `not answering`, or the reason why a service that answers is not ready."""
    try:
        answer = _CLIENT.get(f"http://{settings.host}:{endpoint.port}{endpoint.health}", timeout=2)
        if answer.status_code == 200:
            return HEALTHY
        reason = answer.json()["reason"]
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return "not answering"
    return plain(reason, 60)


def supervised(settings: Settings, endpoint: Endpoint, info: Mapping[str, Any]) -> str:
    """The condition of a service under the supervisor, not of another process on its port."""
    state = str(info["statename"])
    return condition(settings, endpoint) if state in ("STARTING", "RUNNING") else state.lower()


def wait_healthy(
    settings: Settings, endpoints: Iterable[Endpoint], watch: Callable[[], None], say: Say
) -> None:
    """Wait until every service is healthy; `watch` is called between checks and may raise to stop early."""
    waiting = list(endpoints)
    deadline = time.monotonic() + PATIENCE
    while True:
        for endpoint in list(waiting):
            if condition(settings, endpoint) == HEALTHY:
                waiting.remove(endpoint)
                say(f"{endpoint.name} is healthy")
        if not waiting:
            return
        watch()
        names = ", ".join(endpoint.name for endpoint in waiting)
        if time.monotonic() > deadline:
            raise StackError(
                f"{names} did not become healthy in {PATIENCE:.0f} s;"
                f" heapwatch logs --service {waiting[0].name}"
            )
        time.sleep(0.2)


def wait_reloaded(settings: Settings, endpoint: Endpoint, since: float, patience: float) -> None:
    """Wait until Prometheus or Alertmanager has reloaded its files after `since`, in seconds since the epoch.

    Raises:
        StackError: it rejects them and keeps the old ones, or it does not answer.

    """
    deadline = time.monotonic() + patience
    outcome: dict[str, float] = {}
    while time.monotonic() < deadline:
        time.sleep(0.2)
        try:
            samples = _samples(settings, endpoint.name)
        except (httpx.HTTPError, ValueError):
            continue
        outcome = {sample.name: sample.value for sample in samples if "_config_last_reload_" in sample.name}
        reloaded_at = outcome.get(f"{endpoint.name}_config_last_reload_success_timestamp_seconds", 0.0)
        if reloaded_at >= since and outcome.get(f"{endpoint.name}_config_last_reload_successful") == 1:
            return
        if outcome.get(f"{endpoint.name}_config_last_reload_successful") == 0:
            break
    raise StackError(f"{endpoint.name} rejected its changed configuration and keeps the old one")


def targets(settings: Settings) -> dict[str, dict[str, Any]]:
    """Active targets of Prometheus by `host:port`; empty while it does not answer."""
    address = settings.url("prometheus") + "/api/v1/targets?state=active"
    try:
        active = _CLIENT.get(address, timeout=5).json()["data"]["activeTargets"]
    except (httpx.HTTPError, ValueError, KeyError):
        return {}
    return {target["labels"]["instance"]: target for target in active}


def wait_scraped(settings: Settings, expected: Mapping[str, str]) -> None:
    """Wait until each of `expected` (name: `host:port`) is scraped; StackError lists the others."""
    deadline = time.monotonic() + SCRAPE_PATIENCE
    while True:
        scraped = targets(settings)
        expected_targets = {name: scraped.get(instance, {}) for name, instance in expected.items()}
        down = {name: target for name, target in expected_targets.items() if target.get("health") != "up"}
        if not down:
            return
        if time.monotonic() > deadline:
            reasons = [
                f"{name}: {target.get('lastError') or 'not among its targets'}"
                for name, target in down.items()
            ]
            raise StackError(f"Prometheus does not reach {'; '.join(reasons)}")
        time.sleep(0.5)


def prove_delivery(settings: Settings, patience: float = DELIVERY_PATIENCE) -> None:
    """Send a heartbeat that reaches the receiver through Alertmanager: no health check shows that.

    Raises:
        StackError: it does not arrive.

    """
    began = time.time()
    _send(settings)
    while _last_heartbeat(settings) < began:
        if time.time() - began > patience:
            raise StackError(
                "no alert travels from Alertmanager to the receiver: heapwatch logs --service alertmanager"
            )
        time.sleep(0.2)


def _send(settings: Settings) -> None:
    """Post a heartbeat in a new group to Alertmanager: a group's first alert is sent at once."""
    now = datetime.now(timezone.utc)
    labels = {
        "alertname": "Watchdog",
        "component": "watchdog",
        "instance": f"heapwatch up {now:%Y-%m-%dT%H:%M:%S.%f}",
        "kind": "health",
        "severity": "warning",
    }
    alert = {"labels": labels, "endsAt": (now + timedelta(minutes=1)).isoformat()}
    address = settings.url("alertmanager") + "/api/v2/alerts"
    try:
        _CLIENT.post(address, json=[alert], timeout=10).raise_for_status()
    except httpx.HTTPError as error:
        raise StackError(f"Alertmanager accepts no alert: {error}") from error


def _last_heartbeat(settings: Settings) -> float:
    try:
        samples = _samples(settings, "receiver")
    except (httpx.HTTPError, ValueError):
        return 0.0
    return next((sample.value for sample in samples if sample.name == LAST_HEARTBEAT), 0.0)


def _samples(settings: Settings, service: str) -> list[Any]:
    answer = _CLIENT.get(settings.url(service) + "/metrics", timeout=5).raise_for_status()
    return [sample for family in text_string_to_metric_families(answer.text) for sample in family.samples]
