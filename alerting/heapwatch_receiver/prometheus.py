"""What Prometheus knows: where a trainer is, whether an alert still fires, how large things are."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from heapwatch_receiver.decide import Facts
from heapwatch_receiver.fetch import FetchError, fetch
from heapwatch_receiver.ledger import Trainer

Readings = dict[str, float]

_TIMEOUT = 10.0
_MAX_BYTES = 32 << 20
# Series that tell a cleanup's effect, and the key each has in Readings; {} is the value of the label named.
_SERIES = {
    "trainer_process_resident_memory_bytes": ("memory", None),
    "process_start_time_seconds": ("process_start", None),
    "trainer_bodies": ("bodies", None),
    "trainer_entities": ("entities/{}", "type"),
    "trainer_event_list_items": ("events/{}", "list"),
    "trainer_buffer_items": ("buffer/{}", "buffer"),
}


class _Target(BaseModel):
    scrapeUrl: str
    labels: dict[str, str]


class _Targets(BaseModel):
    activeTargets: list[_Target]


class _Sample(BaseModel):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(BaseModel):
    resultType: str
    result: list[_Sample]


class Prometheus:
    """Prometheus's HTTP API. Every method raises FetchError when it gives no usable answer."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url.rstrip("/")

    async def facts(self, trainer: Trainer) -> Facts:
        """The trainer's alerts that fire, and its scrape URL."""
        selector = _selector("ALERTS", trainer, 'alertstate="firing"')
        firing, target = await asyncio.gather(self._query(selector), self.target(trainer))
        return Facts([sample.metric for sample in firing], target)

    async def target(self, trainer: Trainer) -> str | None:
        """The scrape URL of the one active target with this job and instance; None when not exactly one."""
        try:
            targets = _Targets.model_validate(await self._get("targets", {"state": "active"}))
        except ValidationError as error:
            raise FetchError(
                f"Prometheus answered no list of targets: {error.error_count()} errors"
            ) from None
        urls = {
            target.scrapeUrl
            for target in targets.activeTargets
            if (target.labels.get("job"), target.labels.get("instance")) == (trainer.job, trainer.instance)
        }
        if len(urls) != 1:
            return None
        url = urls.pop()
        parts = urlsplit(url)
        return url if parts.scheme in ("http", "https") and parts.hostname else None

    async def readings(self, trainer: Trainer) -> Readings:
        """Sizes of the trainer as last scraped; what is not exported is not there."""
        readings: Readings = {}
        names = f'__name__=~"{"|".join(_SERIES)}"'
        for sample in await self._query(_selector("", trainer, names)):
            if sample.metric.get("role", "trainer") != "trainer":
                continue
            pattern, label = _SERIES[sample.metric["__name__"]]
            key = pattern.format(sample.metric.get(label, "")) if label else pattern
            value = float(sample.value[1])
            if math.isfinite(value):
                readings[key] = readings.get(key, 0.0) + value
        return readings

    async def _query(self, query: str) -> list[_Sample]:
        try:
            return _Vector.model_validate(await self._get("query", {"query": query})).result
        except ValidationError as error:
            raise FetchError(f"Prometheus answered no vector: {error.error_count()} errors") from None

    async def _get(self, path: str, parameters: dict[str, str]) -> Any:
        url = f"{self._url}/api/v1/{path}"
        reply = await fetch(
            self._client, "GET", url, params=parameters, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
        )
        try:
            answer = json.loads(reply.body)
            if reply.status == 200 and answer["status"] == "success":
                return answer["data"]
            raise FetchError(f"Prometheus answered {reply.status}: {str(answer.get('error'))[:200]}")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise FetchError(f"Prometheus answered {reply.status} and no JSON of its API") from None


def _selector(name: str, trainer: Trainer, matcher: str) -> str:
    """A PromQL selector of the trainer's series; values are quoted as Go strings, which JSON's escapes are."""
    job, instance = (json.dumps(value, ensure_ascii=False) for value in (trainer.job, trainer.instance))
    return f"{name}{{job={job},instance={instance},{matcher}}}"
