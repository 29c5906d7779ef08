"""Requests a cleanup from a trainer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit, urlunsplit

import httpx
from pydantic import AfterValidator, BaseModel, FiniteFloat, ValidationError

from heapwatch.http import signing
from heapwatch_receiver.decide import Readings
from heapwatch_receiver.fetch import FetchError, fetch

TIMEOUT_SECONDS = 30.0  # for a safe point; the trainer answers "pending" by then
_MAX_ANSWER_BYTES = 1 << 20
_MAX_TEXT = 300

Text = Annotated[str, AfterValidator(lambda text: text[:_MAX_TEXT])]


class MeasuredLevels(BaseModel):
    """The levels that a trainer measured before or after a cleanup, without unknown ones."""

    resident_memory_bytes: FiniteFloat | None = None
    bodies: FiniteFloat | None = None
    entities: dict[str, FiniteFloat] = {}
    events: dict[str, FiniteFloat] = {}
    buffers: dict[str, FiniteFloat] = {}

    def readings(self) -> Readings:
        """The levels under the keys of Prometheus's readings."""
        readings = {"memory": self.resident_memory_bytes, "bodies": self.bodies}
        for kind, counts in (("entities", self.entities), ("events", self.events), ("buffer", self.buffers)):
            readings |= {f"{kind}/{name}": count for name, count in counts.items()}
        return {key: value for key, value in readings.items() if value is not None}


class Freed(BaseModel):
    """Freed bytes."""

    resident_memory_bytes: FiniteFloat | None = None


class Answer(BaseModel):
    """A trainer's answer to a cleanup request; `pending`: it has reached no safe point yet."""

    status: Literal["done", "pending"]
    request_id: str
    before: MeasuredLevels = MeasuredLevels()
    after: MeasuredLevels = MeasuredLevels()
    freed: Freed = Freed()
    removed: dict[str, FiniteFloat] = {}
    duration_seconds: FiniteFloat | None = None
    errors: list[Text] = []
    detail: Text = ""


async def force_cleanup(
    client: httpx.AsyncClient,
    scrape_url: str,
    secret: str,
    *,
    action: str,
    reason: str,
    request_id: str,
    target: Mapping[str, str],
) -> Answer:
    """Send POST /force_cleanup, signed with the secret, to the host that Prometheus scrapes.

    `target` has the `resource` and `component` of the alert, if it has them.

    Raises:
        FetchError: there was no usable answer; the request may or may not have been read.

    """
    parts = urlsplit(scrape_url)
    url = urlunsplit((parts.scheme, parts.netloc, "/force_cleanup", "", ""))
    request = {
        "action": action,
        "reason": reason,
        "request_id": request_id,
        "timeout_seconds": TIMEOUT_SECONDS,
    }
    content, headers = signing.signed_json(secret, url, {**request, **target})
    body = await fetch(
        client, "POST", url, timeout=TIMEOUT_SECONDS + 5, max_bytes=_MAX_ANSWER_BYTES, headers=headers,
        content=content,
    )  # fmt: skip
    try:
        answer = Answer.model_validate_json(body)
    except ValidationError as error:
        raise FetchError(f"answered garbage ({error.error_count()} errors)") from None
    if answer.request_id != request_id:
        raise FetchError(f"answered for another request: {answer.request_id[:100]!a}")
    return answer
