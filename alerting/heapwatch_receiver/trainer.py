"""Requests a cleanup from a trainer, and finds out which process answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import AfterValidator, BaseModel, Field, FiniteFloat, ValidationError

from heapwatch.http import signing
from heapwatch.runtime.labels import keep_largest
from heapwatch.runtime.plain_text import plain
from heapwatch_receiver.decide import Readings
from heapwatch_receiver.fetch import Reply, fetch

_MAX_ANSWER_BYTES = 1 << 20
_MAX_METRICS_BYTES = 16 << 20
_MAX_NUMBER = 1e18
_MAX_NAME = 100
_MAX_TEXT = 300
_MAX_TEXTS = 5
_PROCESS_START = re.compile(rb"^process_start_time_seconds(?:\{[^}\n]*\})? (\S+)", re.MULTILINE)


def _bounded(counts: dict[str, float]) -> dict[str, float]:
    shown: dict[str, float] = {}
    for name, count in counts.items():
        short = plain(name, _MAX_NAME)
        shown[short] = shown.get(short, 0.0) + count
    return keep_largest(shown)[0]


# A trainer may send any values. They are cut to what ledger and metrics can hold, and not rejected.
Number = Annotated[FiniteFloat, AfterValidator(lambda number: min(max(number, -_MAX_NUMBER), _MAX_NUMBER))]
Counts = Annotated[dict[str, Number], AfterValidator(_bounded)]
Text = Annotated[str, AfterValidator(lambda text: plain(text, _MAX_TEXT))]
Texts = Annotated[list[Text], AfterValidator(lambda texts: texts[:_MAX_TEXTS])]


class MeasuredLevels(BaseModel):
    """The levels that a trainer measured before or after a cleanup, without unknown ones."""

    resident_memory_bytes: Number | None = None
    bodies: Number | None = None
    entities: Counts = {}
    events: Counts = {}
    buffers: Counts = {}

    def readings(self) -> Readings:
        """The levels under the keys of Prometheus's readings."""
        readings = {"memory": self.resident_memory_bytes, "bodies": self.bodies}
        for kind, counts in (("entities", self.entities), ("events", self.events), ("buffer", self.buffers)):
            readings |= {f"{kind}/{name}": count for name, count in counts.items()}
        return {key: value for key, value in readings.items() if value is not None}


class Freed(BaseModel):
    """Freed bytes."""

    resident_memory_bytes: Number | None = None


class Answer(BaseModel):
    """A trainer's answer to a cleanup request."""

    status: str = Field(pattern="^(done|pending)$")
    request_id: str
    before: MeasuredLevels = MeasuredLevels()
    after: MeasuredLevels = MeasuredLevels()
    freed: Freed = Freed()
    removed: Counts = {}
    duration_seconds: Number | None = None
    errors: Texts = []
    detail: Text = ""

    @property
    def pending(self) -> bool:
        """Whether the trainer has not reached a safe point yet; send the same request id again."""
        return self.status == "pending"


@dataclass(frozen=True)
class CleanupRefused(Exception):
    """The trainer did not clean up; `retry_after` is in seconds, None if a retry is useless.

    `by_choice`: it is configured to accept no cleanups, for example without a token. This is no failure.
    """

    detail: str
    retry_after: float | None = None
    by_choice: bool = False


async def force_cleanup(
    client: httpx.AsyncClient,
    scrape_url: str,
    secret: str,
    *,
    action: str,
    reason: str,
    request_id: str,
    timeout: float,
    target: Mapping[str, str],
) -> Answer:
    """Send POST /force_cleanup, signed with the secret, to the host that Prometheus scrapes.

    `target` has the `resource` and `component` of the alert, if it has them. If the trainer rejects a request
    with them, it is sent once more without.

    Raises:
        CleanupRefused: the answer is no cleanup.
        FetchError: there was no complete answer; the request may or may not have been read.

    """
    parts = urlsplit(scrape_url)
    url = urlunsplit((parts.scheme, parts.netloc, "/force_cleanup", "", ""))
    asked = {"action": action, "reason": reason, "request_id": request_id, "timeout_seconds": timeout}
    reply = await _post(client, url, secret, {**asked, **target}, timeout + 5)
    if reply.status == 400 and target:
        # an older library does not know these fields: it cleans up everything
        reply = await _post(client, url, secret, asked, timeout + 5)
    if reply.status in (200, 202):
        try:
            answer = Answer.model_validate_json(reply.body)
        except ValidationError as error:
            raise CleanupRefused(
                f"answered {reply.status} with garbage ({error.error_count()} errors)", 0.0
            ) from None
        if answer.request_id != request_id:
            raise CleanupRefused(f"answered for another request: {answer.request_id[:100]!a}", 0.0)
        return answer
    detail = f"answered {reply.status}: {plain(reply.body[:300].decode('utf-8', 'replace'))}"
    if reply.status == 429:
        raise CleanupRefused(detail, _seconds(reply.headers.get("Retry-After")))
    raise CleanupRefused(detail, 0.0 if reply.status >= 500 else None, by_choice=reply.status == 403)


async def _post(
    client: httpx.AsyncClient, url: str, secret: str, asked: Mapping[str, object], timeout: float
) -> Reply:
    body, headers = signing.signed_json(secret, url, asked)
    return await fetch(
        client, "POST", url, timeout=timeout, max_bytes=_MAX_ANSWER_BYTES, headers=headers, content=body
    )


async def process_start(client: httpx.AsyncClient, scrape_url: str, timeout: float) -> float | None:
    """Start time of the process that answers, in seconds since the epoch; None if it does not export it.

    Raises:
        FetchError: the trainer does not answer.

    """
    reply = await fetch(client, "GET", scrape_url, timeout=timeout, max_bytes=_MAX_METRICS_BYTES)
    match = _PROCESS_START.search(reply.body)
    try:
        return float(match[1]) if match and reply.status == 200 else None
    except ValueError:
        return None


def _seconds(text: str | None) -> float:
    try:
        return min(3600.0, max(0.0, float(text or "1")))
    except ValueError:
        return 1.0
