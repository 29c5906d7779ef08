"""`heapwatch cleanup`, and the cleanups that `heapwatch monitor --auto-cleanup` requests."""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heapwatch.cli.reporter import described, title
from heapwatch.cli.sources import url_of_trainer
from heapwatch.errors import Unreachable, UsageError
from heapwatch.http.client import post_json, understood
from heapwatch.http.guards import find_token
from heapwatch.judge.component import Component
from heapwatch.judge.limits import ExceededLimit
from heapwatch.registration import choose, token_of
from heapwatch.runtime.cleanup import ACTIONS
from heapwatch.text.numbers import from_to, megabytes
from heapwatch.text.terminal import say

COOLDOWN_SECONDS = 120.0
_WAIT_SECONDS = 30.0
_MONITOR_WAIT_SECONDS = 15.0
_CLEANED = ("memory", "bodies", "entities", "events", "buffer")
_EPILOG = """
The token is HEAPWATCH_TOKEN, else the content of HEAPWATCH_TOKEN_FILE, else that of the running stack.

exit codes:
  0   cleaned up
  3   no answer, or the trainer has not reached a safe point
  64  the command line is wrong, or there is no token

examples:
  heapwatch cleanup walker
  heapwatch cleanup 127.0.0.1:7777 --action regular
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "cleanup",
        help="make a trainer clean up now",
        description="Make a trainer clean up at its next safe point, and show what was freed.",
        epilog=_EPILOG,
    )
    parser.add_argument("trainer", metavar="NAME|URL", help="a registered trainer, or its address")
    parser.add_argument("--action", choices=ACTIONS, default="emergency", help="what to do (%(default)s)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Request a cleanup and print what it did."""
    token = find_token_of_user()
    document = {
        "action": arguments.action,
        "reason": "heapwatch cleanup",
        "request_id": uuid.uuid4().hex,
        "timeout_seconds": _WAIT_SECONDS,
    }
    try:
        url = url_of_trainer(arguments.trainer)
        status, lines = _request(url, document, token, _WAIT_SECONDS)
    except Unreachable as error:
        say(f"heapwatch: {error}", error=True)
        return 3
    say(*lines)
    return 0 if status == 200 else 3


def _request(url: str, document: Mapping[str, Any], token: str, seconds: float) -> tuple[int, list[str]]:
    """Request a cleanup; return the HTTP status and lines about it.

    The status is 202 if the trainer reached no safe point within `seconds`.
    """
    status, answer = post_json(f"{url}/force_cleanup", document, token, seconds + 5)
    with understood(url):
        return status, cleanup_lines(answer)


def find_token_of_user() -> str:
    """Return the token from the environment, else from the running stack; raise UsageError without one."""
    try:
        stack = choose().stack
        token = find_token() or (token_of(stack) if stack is not None else None)
    except (OSError, ValueError) as error:
        raise UsageError(f"the token cannot be read: {error}") from None
    if token is None:
        raise UsageError(
            "a cleanup needs the trainer's token: no stack of this user runs, so set HEAPWATCH_TOKEN or "
            "HEAPWATCH_TOKEN_FILE"
        )
    return token


class Cleaner:
    """Requests at most one cleanup of a trainer in each cooldown, and none if a level stays critical."""

    def __init__(self, token: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._token = token
        self._clock = clock
        self._requested_at = float("-inf")
        self._requested: frozenset[Component] = frozenset()
        self._ineffective: frozenset[Component] = frozenset()

    def clean(self, alerts: Iterable[ExceededLimit], url: str) -> list[str]:
        """Request an emergency cleanup if these alerts need one, and return the lines about it."""
        critical = {
            Component(alert.resource, alert.component): alert
            for alert in alerts
            if alert.kind == "threshold" and alert.severity != "warning" and alert.resource in _CLEANED
        }
        self._ineffective &= critical.keys()
        if self._clock() - self._requested_at < COOLDOWN_SECONDS:
            return []
        lines = self._without_effect(critical)
        components = critical.keys() - self._ineffective
        if not components:
            return lines
        reasons = ", ".join(described(critical[component]) for component in sorted(components))
        return lines + self._request_cleanup(frozenset(components), reasons, url)

    def _without_effect(self, critical: dict[Component, ExceededLimit]) -> list[str]:
        ineffective = (self._requested & critical.keys()) - self._ineffective
        self._requested = frozenset()
        self._ineffective |= ineffective
        return [
            f"CLEANUP DID NOT HELP: {described(critical[component])}; not repeated until it falls below"
            for component in sorted(ineffective)
        ]

    def _request_cleanup(self, components: frozenset[Component], reasons: str, url: str) -> list[str]:
        heading = "EMERGENCY: triggering an emergency cleanup"
        self._requested_at = self._clock()
        document = {
            "action": "emergency",
            "reason": f"heapwatch monitor: {reasons}"[:1000],
            "request_id": uuid.uuid4().hex,
            "timeout_seconds": _MONITOR_WAIT_SECONDS,
        }
        if len(components) == 1:
            (only,) = components
            document |= {"resource": only.resource, "component": only.name}
        try:
            status, lines = _request(url, document, self._token, _MONITOR_WAIT_SECONDS)
        except Unreachable as error:
            return [heading, f"CLEANUP FAILED: {error}"]
        self._requested = components if status == 200 else frozenset()
        return [heading, *lines]


def cleanup_lines(answer: Mapping[str, Any]) -> list[str]:
    """Describe a cleanup: bytes freed, each level before and after, and the errors of cleanup functions."""
    if answer.get("status") != "done":
        return [f"Cleanup pending: {answer.get('detail', 'no safe point yet')}"]
    freed = answer["freed"].get("resident_memory_bytes")
    result = "freed memory not known" if freed is None else f"{megabytes(freed)} freed"
    action = answer["action"].capitalize()
    changed = [f"{action} cleanup completed in {answer['duration_seconds']:.1f} s: {result}"]
    before, after = _flat(answer["before"]), _flat(answer["after"])
    for name in sorted(before.keys() & after.keys() - {"resident_memory_bytes"}):
        if before[name] != after[name]:
            changed.append(f"   {title(name)}: {from_to(before[name], after[name])}")
    return [*changed, *(f"   error: {error}" for error in answer["errors"])]


def _flat(levels: Mapping[str, Any]) -> dict[str, float]:
    flat: dict[str, float] = {}
    for name, value in levels.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat
