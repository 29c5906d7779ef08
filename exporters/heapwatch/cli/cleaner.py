"""`--auto-cleanup`: requests a cleanup when a trainer is critical, but not again if it did not help."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from heapwatch.analysis.readings import Component, ExceededLimit
from heapwatch.cli.reporter import cleanup_lines, described, named
from heapwatch.errors import Unreachable
from heapwatch.http.client import post_json

COOLDOWN_SECONDS = 120.0
WAIT_SECONDS = 15.0
CLEANED = ("memory", "bodies", "entities", "events", "buffer")

Post = Callable[[str, dict[str, Any], str, float], tuple[int, Any]]


class Cleaner:
    """Cleans one trainer at most once in each cooldown; what stays critical after it is not cleaned again."""

    def __init__(
        self, token: str, *, post: Post = post_json, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._token = token
        self._post = post
        self._clock = clock
        self._asked_at = float("-inf")
        self._asked_for: frozenset[Component] = frozenset()
        self._unhelped: frozenset[Component] = frozenset()
        self._pending: str | None = None
        self._waiting_reported = False

    def clean(self, alerts: Iterable[ExceededLimit], url_of: Callable[[], str]) -> list[str]:
        """Request an emergency cleanup if these alerts need one, and return the lines about it."""
        critical = {
            Component(alert.resource, alert.component): alert
            for alert in alerts
            if alert.kind == "threshold" and alert.severity != "warning" and alert.resource in CLEANED
        }
        self._unhelped &= critical.keys()
        left = COOLDOWN_SECONDS - (self._clock() - self._asked_at)
        if left > 0 and self._pending is None:
            return self._waiting(critical, left)
        self._waiting_reported = False
        lines = self._without_effect(critical) if self._pending is None else []
        wanted = critical.keys() - self._unhelped
        if not wanted:
            return lines
        reasons = ", ".join(described(critical[component]) for component in sorted(wanted))
        return lines + self._ask(frozenset(wanted), reasons, url_of)

    def _waiting(self, critical: dict[Component, ExceededLimit], left: float) -> list[str]:
        """Report what is critical during the cooldown, once."""
        if self._waiting_reported or not critical.keys() - self._unhelped:
            return []
        self._waiting_reported = True
        names = ", ".join(named(component) for component in sorted(critical.keys() - self._unhelped))
        return [f"COOLDOWN: {names} still critical; the next cleanup is at least {left:.0f} s away"]

    def _without_effect(self, critical: dict[Component, ExceededLimit]) -> list[str]:
        still = (self._asked_for & critical.keys()) - self._unhelped
        self._asked_for = frozenset()
        self._unhelped |= still
        return [
            f"CLEANUP DID NOT HELP: {described(critical[component])}; not repeated until it falls below"
            for component in sorted(still)
        ]

    def _ask(self, wanted: frozenset[Component], reasons: str, url_of: Callable[[], str]) -> list[str]:
        request_id = self._pending or uuid.uuid4().hex
        first = [] if self._pending else ["EMERGENCY: triggering an emergency cleanup"]
        self._asked_at = self._clock()
        document = {
            "action": "emergency",
            "reason": f"heapwatch monitor: {reasons}"[:1000],
            "request_id": request_id,
            "timeout_seconds": WAIT_SECONDS,
        }
        if len(wanted) == 1:
            (only,) = wanted
            document |= {"resource": only.resource, "component": only.name}
        try:
            status, answer = self._post(f"{url_of()}/force_cleanup", document, self._token, WAIT_SECONDS + 5)
        except Unreachable as error:
            return [*first, f"CLEANUP FAILED: {error}"]
        self._pending = request_id if status == 202 else None
        self._asked_for = wanted
        return first + cleanup_lines(answer)
