"""Queries to Prometheus: firing alerts, scrape URLs of trainers, and levels of resources."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import BaseModel, ValidationError

from heapwatch_receiver.decide import Facts, Readings, TrainerKey
from heapwatch_receiver.fetch import FetchError, fetch

log = logging.getLogger("heapwatch.receiver")

_TIMEOUT = 10.0
_MAX_BYTES = 32 << 20
# Series that show the effect of a cleanup, with their keys in Readings; {} is the value of the given label.
_SERIES = {
    "trainer_process_resident_memory_bytes": ("memory", None),
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


class _FiringAlert(BaseModel):
    labels: dict[str, str]
    state: str


class _Alerts(BaseModel):
    alerts: list[_FiringAlert]


class _Sample(BaseModel):
    metric: dict[str, str]
    value: tuple[float, str]


class _Vector(BaseModel):
    result: list[_Sample]


_T = TypeVar("_T")


class _Answer(BaseModel, Generic[_T]):
    data: _T


@dataclass(frozen=True)
class _Snapshot:
    """All firing alerts and scrape URLs by trainer, at a second of the monotonic clock."""

    at: float
    firing: Mapping[TrainerKey, list[Mapping[str, str]]]
    urls: Mapping[TrainerKey, set[str]]


class Prometheus:
    """Prometheus's HTTP API."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._asking = asyncio.Lock()
        self._last: _Snapshot | None = None

    async def facts(self, trainer: TrainerKey) -> Facts | None:
        """The trainer's firing alerts and its scrape URL now; None if Prometheus gives no usable answer.

        Callers that wait for an answer share the next one, so that many alerts do not cause many requests.
        """
        called = time.monotonic()
        async with self._asking:
            if self._last is None or self._last.at < called:
                try:
                    self._last = await self._ask()
                except FetchError as error:
                    log.warning("Prometheus, about %s: %s", trainer, error)
                    return None
            snapshot = self._last
        urls = snapshot.urls.get(trainer, set())
        return Facts(snapshot.firing.get(trainer, []), next(iter(urls)) if len(urls) == 1 else None)

    async def readings(self, trainer: TrainerKey) -> Readings:
        """The trainer's levels at the last scrape, without those that it does not export.

        Raises:
            FetchError: Prometheus gave no usable answer.

        """
        # Label values are quoted as Go strings; JSON's escapes are valid in them.
        job, instance = (json.dumps(value, ensure_ascii=False) for value in (trainer.job, trainer.instance))
        query = f'{{job={job},instance={instance},__name__=~"{"|".join(_SERIES)}"}}'
        vector = await self._get(_Vector, "query", {"query": query})
        readings: Readings = {}
        for sample in vector.result:
            if sample.metric.get("role", "trainer") != "trainer":
                continue
            pattern, label = _SERIES[sample.metric["__name__"]]
            key = pattern.format(sample.metric.get(label, "")) if label else pattern
            value = float(sample.value[1])
            if math.isfinite(value):
                readings[key] = readings.get(key, 0.0) + value
        return readings

    async def _ask(self) -> _Snapshot:
        at = time.monotonic()
        alerts, targets = await asyncio.gather(
            self._get(_Alerts, "alerts", {}), self._get(_Targets, "targets", {"state": "active"})
        )
        firing: dict[TrainerKey, list[Mapping[str, str]]] = {}
        for alert in alerts.alerts:
            if alert.state == "firing":
                firing.setdefault(_trainer(alert.labels), []).append(alert.labels)
        urls: dict[TrainerKey, set[str]] = {}
        for target in targets.activeTargets:
            parts = urlsplit(target.scrapeUrl)
            if parts.scheme in ("http", "https") and parts.hostname:
                urls.setdefault(_trainer(target.labels), set()).add(target.scrapeUrl)
        return _Snapshot(at, firing, urls)

    async def _get(self, shape: type[_T], path: str, parameters: dict[str, str]) -> _T:
        url = f"{self._url}/api/v1/{path}"
        body = await fetch(
            self._client, "GET", url, params=parameters, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
        )
        try:
            answer: _Answer[_T] = _Answer[shape].model_validate_json(body)  # type: ignore[valid-type]
            return answer.data
        except ValidationError as error:
            raise FetchError(
                f"Prometheus answered {path} in another form: {error.error_count()} errors"
            ) from None


def _trainer(labels: Mapping[str, str]) -> TrainerKey:
    return TrainerKey(labels.get("job", ""), labels.get("instance", ""))
