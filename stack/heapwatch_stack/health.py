"""Waits until services answer and Prometheus scrapes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.runtime.plain_text import plain
from heapwatch_stack.endpoints import Endpoint
from heapwatch_stack.errors import StackError
from heapwatch_stack.processes import serves
from heapwatch_stack.settings import Settings

HEALTHY = "healthy"
STRANGER = "port is taken"
# Importing torch may take minutes on a busy machine. A service that keeps ending is noticed much earlier.
PATIENCE = 600.0
SAYS_AFTER = 30.0
Say = Callable[[str], None]


def healthy(settings: Settings, endpoint: Endpoint, timeout: float = 2) -> bool:
    """Whether the health address answers with 200 within `timeout` seconds."""
    return condition(settings, endpoint, timeout) == HEALTHY


def condition(settings: Settings, endpoint: Endpoint, timeout: float = 2) -> str:
    """`healthy`, `not answering`, or the reason why a service that answers is not ready."""
    try:
        answer = httpx.get(settings.url(endpoint.port) + endpoint.health, timeout=timeout, trust_env=False)
        if answer.status_code == 200:
            return HEALTHY
        reason = answer.json()["reason"]
    except (httpx.HTTPError, ValueError, LookupError, TypeError):
        return "not answering"
    return plain(reason, 60)


def supervised(settings: Settings, endpoint: Endpoint, info: Mapping[str, Any]) -> str:
    """The condition of a service under the supervisor: what answers in its place is not taken for it.

    Args:
        settings: settings of the stack.
        endpoint: the service.
        info: its state as the supervisor reports it, with `pid` and `statename`.

    """
    state = condition(settings, endpoint)
    if state == HEALTHY and not serves(info["pid"], endpoint.port):
        return STRANGER
    return state if state == HEALTHY or info["statename"] == "RUNNING" else str(info["statename"]).lower()


def wait_healthy(
    settings: Settings,
    endpoints: Iterable[Endpoint],
    watch: Callable[[], None],
    say: Say,
    patience: float = PATIENCE,
) -> None:
    """Wait until every service is healthy; `watch` is called between checks and may raise to stop early."""
    waiting = list(endpoints)
    deadline = time.monotonic() + patience
    say_at = time.monotonic() + SAYS_AFTER
    while True:
        for endpoint in list(waiting):
            if healthy(settings, endpoint):
                waiting.remove(endpoint)
                say(f"{endpoint.name} is healthy")
        if not waiting:
            return
        watch()
        names = ", ".join(endpoint.name for endpoint in waiting)
        if time.monotonic() > say_at:
            say(f"still starting: {names}")
            say_at += SAYS_AFTER
        if time.monotonic() > deadline:
            raise StackError(
                f"{names} did not become healthy in {patience:.0f} s;"
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
            text = httpx.get(settings.url(endpoint.port) + "/metrics", timeout=5, trust_env=False).text
            families = list(text_string_to_metric_families(text))
        except (httpx.HTTPError, ValueError):
            continue
        samples = [sample for family in families for sample in family.samples]
        outcome = {sample.name: sample.value for sample in samples if "_config_last_reload_" in sample.name}
        at = outcome.get(f"{endpoint.name}_config_last_reload_success_timestamp_seconds", 0.0)
        if at >= since and outcome.get(f"{endpoint.name}_config_last_reload_successful") == 1:
            return
        if outcome.get(f"{endpoint.name}_config_last_reload_successful") == 0:
            break
    raise StackError(f"{endpoint.name} rejected its changed configuration and keeps the old one")


def targets(settings: Settings) -> dict[str, dict[str, Any]]:
    """Active targets of Prometheus by `host:port`; empty while it does not answer."""
    address = settings.url(settings.ports.prometheus) + "/api/v1/targets?state=active"
    try:
        active = httpx.get(address, timeout=5, trust_env=False).json()["data"]["activeTargets"]
    except (httpx.HTTPError, ValueError, KeyError):
        return {}
    return {target["labels"]["instance"]: target for target in active}


def wait_scraped(settings: Settings, expected: Mapping[str, str], patience: float = 90) -> None:
    """Wait until each of `expected` (name: `host:port`) is scraped; StackError lists the others."""
    deadline = time.monotonic() + patience
    while True:
        seen = targets(settings)
        down = {name: at for name, at in expected.items() if seen.get(at, {}).get("health") != "up"}
        if not down:
            return
        if time.monotonic() > deadline:
            reasons = [
                f"{name}: {seen.get(at, {}).get('lastError') or 'not among its targets'}"
                for name, at in down.items()
            ]
            raise StackError(f"Prometheus does not reach {'; '.join(reasons)}")
        time.sleep(0.5)
