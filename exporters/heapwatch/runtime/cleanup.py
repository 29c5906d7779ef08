"""Runs cleanups in the training thread at its next safe point; any thread may request one."""

from __future__ import annotations

import inspect
import logging
import operator
import secrets
import threading
import time
import weakref
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import MethodType
from typing import Any, NamedTuple

from heapwatch.measure.introspection.names import type_of
from heapwatch.runtime.failures import must_propagate, raised, redacted
from heapwatch.runtime.labels import MAX_NAMES, OTHER, checked_name
from heapwatch.runtime.release import release
from heapwatch.text.numbers import size
from heapwatch.text.terminal import plain

log = logging.getLogger("heapwatch")

ACTIONS = ("regular", "emergency")

_REMEMBERED_TICKETS = 64
_MAX_WAITING = 16


class QueueFull(Exception):
    """Too many cleanups are already waiting for a safe point."""


class CleanupTarget(NamedTuple):
    """The target of a cleanup: `resource` and `component` of an alert; empty if the request names none."""

    resource: str = ""
    component: str = ""


ANYTHING = CleanupTarget()


class CleanupRequest(NamedTuple):
    """A cleanup to run. A second request with the same `request_id` is the same one."""

    action: str = "emergency"
    reason: str = ""
    trigger: str = "api"
    request_id: str = ""
    target: CleanupTarget = ANYTHING

    def checked(self) -> CleanupRequest:
        """The request, with a new id if it has none; raises ValueError for an unknown action."""
        if self.action not in ACTIONS:
            raise ValueError(f"action {self.action!r} is not known; allowed: {', '.join(ACTIONS)}")
        return self if self.request_id else self._replace(request_id=secrets.token_hex(16))


@dataclass(frozen=True)
class CleanupResult:
    """One cleanup: levels before and after, removed items. Memory in bytes; unknown levels are absent."""

    request_id: str
    action: str
    trigger: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    freed: Mapping[str, int]
    removed: Mapping[str, int]
    duration_seconds: float
    errors: list[str] = field(default_factory=list)
    reason: str = ""
    target: CleanupTarget = ANYTHING

    def as_dict(self) -> dict[str, Any]:
        """The result as a JSON object; `memory_saved_mb`, for scripts, is the freed memory in 1e6 bytes."""
        document = {"status": "done", **asdict(self)}
        document |= {name: text for name, text in document.pop("target")._asdict().items() if text}
        freed = self.freed.get("resident_memory_bytes")
        return document if freed is None else document | {"memory_saved_mb": round(freed / 1e6, 3)}


@dataclass(eq=False)
class Ticket:
    """A requested cleanup; `state` is `pending`, `running` or `done`."""

    request: CleanupRequest
    state: str = "pending"
    result: CleanupResult | None = None
    _done: threading.Event = field(default_factory=threading.Event)

    def wait(self, timeout: float) -> CleanupResult | None:
        """Wait for the result for at most `timeout` seconds; None if it is not available yet."""
        self._done.wait(timeout)
        return self.result

    def resolve(self, result: CleanupResult) -> None:
        """Set the result and wake the waiting threads."""
        self.result, self.state = result, "done"
        self._done.set()


class CleanupQueue:
    """Runs the trainer's cleanup functions, then returns memory to the system.

    Args:
        measure: returns the present levels, `{"resident_memory_bytes": ..., "bodies": ..., ...}`; called in
            the training thread.
        wake: makes the next visit of the safe point run what is due; any thread may call it.
        seconds_since_safe_point: seconds since the trainer passed one; None before the first.

    """

    def __init__(
        self,
        measure: Callable[[], dict[str, Any]],
        wake: Callable[[], None],
        seconds_since_safe_point: Callable[[], float | None],
    ) -> None:
        self.cleanups: Counter[tuple[str, str]] = Counter()
        self.freed_bytes: Counter[str] = Counter()
        self.removed: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, tuple[int, float]] = {}
        self.last: CleanupResult | None = None
        self.on_done: list[Callable[[], None]] = []
        self._measure = measure
        self._wake = wake
        self.seconds_since_safe_point = seconds_since_safe_point
        # Each: a reference to the function, whether it takes the action, whether it takes the target.
        self._functions: list[tuple[Callable[[], Callable[..., Any] | None], bool, bool]] = []
        self._waiting: deque[Ticket] = deque()
        self._tickets: OrderedDict[str, Ticket] = OrderedDict()
        self._lock = threading.Lock()

    def register(self, function: Callable[..., Any]) -> None:
        """Call `function(action)`, or `function()` if it has no parameter, in every cleanup.

        If it has a parameter `target`, it also gets the `CleanupTarget`.

        Raises:
            ValueError: it requires arguments other than the action and `target`.

        """
        takes_action, takes_target = _accepted_arguments(function)
        find = weakref.WeakMethod(function) if isinstance(function, MethodType) else lambda: function
        self._functions.append((find, takes_action, takes_target))

    def submit(self, request: CleanupRequest) -> Ticket:
        """Request a cleanup at the next safe point; the same `request_id` returns the same ticket.

        Raises:
            ValueError: for an unknown action.
            QueueFull: too many are already waiting.

        """
        request = request.checked()
        with self._lock:
            if request.request_id in self._tickets:
                return self._tickets[request.request_id]
            if len(self._waiting) >= _MAX_WAITING:
                raise QueueFull(f"{_MAX_WAITING} cleanups are already waiting for a safe point")
            ticket = self._tickets[request.request_id] = Ticket(request)
            self._waiting.append(ticket)
            # The newest tickets include all that wait, so only finished ones are dropped.
            while len(self._tickets) > _REMEMBERED_TICKETS:
                self._tickets.popitem(last=False)
        self._wake()
        return ticket

    def pending(self) -> int:
        """Number of cleanups waiting for a safe point."""
        return len(self._waiting)

    def functions(self) -> int:
        """Number of the trainer's functions that a cleanup calls."""
        return len(self._functions)

    def run_pending(self) -> None:
        """Run the requested cleanups; call it only at a safe point. An interrupted one stays in the queue."""
        while self._waiting:
            ticket = self._waiting[0]
            ticket.state = "running"
            ticket.resolve(self.run(ticket.request))
            self._waiting.popleft()

    def run(self, request: CleanupRequest) -> CleanupResult:
        """Clean up now, in the calling thread, which must be at a safe point.

        Raises:
            ValueError: for an unknown action. Errors of cleanup functions are in the result's `errors`.

        """
        request = request.checked()
        began = time.perf_counter()
        errors: list[str] = []
        before = self._levels(errors)
        removed: Counter[str] = Counter()
        for find, takes_action, takes_target in list(self._functions):
            function = find()
            if function is not None:
                arguments = (request.action,) if takes_action else ()
                options = {"target": request.target} if takes_target else {}
                with _collect_errors(getattr(function, "__qualname__", "cleanup function"), errors):
                    _add_removed(removed, function(*arguments, **options))
        with _collect_errors("release", errors):
            release()
        after = self._levels(errors)
        memory = "resident_memory_bytes"
        freed = {memory: before[memory] - after[memory]} if memory in before and memory in after else {}
        seconds = time.perf_counter() - began
        result = CleanupResult(
            before=before,
            after=after,
            freed=freed,
            removed=dict(removed),
            duration_seconds=seconds,
            errors=errors,
            **request._asdict(),
        )
        self._count(result)
        log.info("%s", described(result))
        return result

    def _levels(self, errors: list[str]) -> dict[str, Any]:
        with _collect_errors("measure", errors):
            return self._measure()
        return {}

    def _count(self, result: CleanupResult) -> None:
        self.cleanups[result.action, result.trigger] += 1
        self.freed_bytes[result.action] += max(0, result.freed.get("resident_memory_bytes", 0))
        for resource, count in result.removed.items():
            resources = {name for _, name in self.removed}
            is_kept = resource in resources or len(resources) < MAX_NAMES
            self.removed[result.action, resource if is_kept else OTHER] += count
        times, seconds = self.durations.get(result.action, (0, 0.0))
        self.durations[result.action] = (times + 1, seconds + result.duration_seconds)
        self.last = result
        for function in self.on_done:
            function()


def described(result: CleanupResult) -> str:
    """Describe a cleanup in one line: reason, effect and duration."""
    freed = result.freed.get("resident_memory_bytes")
    parts = ["freed is not known" if freed is None else f"{size(freed)} freed"]
    parts += [f"{count} {resource} removed" for resource, count in result.removed.items()]
    parts += [f"error: {error}" for error in result.errors]
    reason = f" ({plain(result.reason, 100)})" if result.reason else ""
    return plain(
        f"{result.action} cleanup asked for by {result.trigger}{reason} took "
        f"{result.duration_seconds:.2f} s: {', '.join(parts)}"
    )


@contextmanager
def _collect_errors(operation: str, errors: list[str]) -> Iterator[None]:
    """Log an error of an operation and add it to `errors`; re-raise one that is meant for the trainer."""
    try:
        yield
    except BaseException as error:
        if must_propagate(error):
            raise
        log.warning("cleanup: %s: %s", operation, raised(error))
        errors.append(f"{operation}: {redacted(error)}")


def _accepted_arguments(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether a cleanup function takes the action, and whether it takes the target."""
    if not callable(function):
        raise ValueError(f"a cleanup function must be callable, got {type(function).__name__}")
    signature = inspect.signature(function)
    takes_target = "target" in signature.parameters
    options = {"target": ANYTHING} if takes_target else {}
    for arguments in (("action",), ()):
        with suppress(TypeError):
            signature.bind(*arguments, **options)
            return bool(arguments), takes_target
    raise ValueError(
        f"{function!r} needs other arguments; allowed: function(), function(action) or "
        "function(action, target)"
    )


def _add_removed(removed: Counter[str], result: object) -> None:
    """Add the counts that a cleanup function returned."""
    if result is None:
        return
    if not isinstance(result, Mapping):
        raise TypeError(f"returned {type_of(result)}; allowed: None or {{resource: count}}")
    for resource, count in result.items():
        number = operator.index(count)
        if not 0 <= number < 2**63:
            raise ValueError(f"{resource!r}: the count must be from 0 to 2**63 - 1, got {number}")
        removed[checked_name("resource", resource)] += number
