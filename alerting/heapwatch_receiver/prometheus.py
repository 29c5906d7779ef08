"""Queries to Prometheus: firing alerts, scrape URLs of trainers, and levels of resources."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import AwareDatetime, BaseModel, ValidationError

from heapwatch_receiver.clock import Clock
from heapwatch_receiver.decide import Facts, Readings
from heapwatch_receiver.fetch import FetchError, fetch
from heapwatch_receiver.ledger import TrainerKey

_TIMEOUT = 10.0
_MAX_BYTES = 32 << 20
_SNAPSHOT_PAUSE = 0.1  # seconds between two queries of all alerts and targets
# Series that show the effect of a cleanup, with their keys in Readings; {} is the value of the given label.
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


class _Runtime(BaseModel):
    startTime: AwareDatetime


@dataclass(frozen=True)
class _Snapshot:
    """All firing alerts and scrape URLs by trainer, at the steady second `began` or later."""

    began: float
    firing: Mapping[TrainerKey, list[Mapping[str, str]]]
    urls: Mapping[TrainerKey, set[str]]
    warm: bool


class Prometheus:
    """Prometheus's HTTP API. Every method raises FetchError if there is no usable answer."""

    def __init__(self, client: httpx.AsyncClient, url: str, clock: Clock, *, warm_up: float) -> None:
        self._client = client
        self._url = url.rstrip("/")
        self._warm_up = warm_up
        self._clock = clock
        self._querying = asyncio.Lock()
        self._last: _Snapshot | None = None

    async def facts(self, trainer: TrainerKey) -> Facts:
        """The trainer's firing alerts and its scrape URL at the time of the call or later.

        Concurrent callers share one query, so that many alerts do not cause many requests.
        """
        asked = self._clock.steady()
        async with self._querying:
            if self._last is None or self._last.began < asked:
                await asyncio.sleep(_SNAPSHOT_PAUSE)
                self._last = await self._query_all()
            snapshot = self._last
        urls = snapshot.urls.get(trainer, set())
        target = next(iter(urls)) if len(urls) == 1 else None
        return Facts(snapshot.began, snapshot.firing.get(trainer, []), target, snapshot.warm)

    async def refresh(self) -> None:
        """Query all alerts and targets, for `scrapes`."""
        async with self._querying:
            self._last = await self._query_all()

    def scrapes(self, trainer: TrainerKey) -> bool:
        """Whether Prometheus scraped this trainer at the last query; false before the first one."""
        return self._last is not None and trainer in self._last.urls

    async def readings(self, trainer: TrainerKey) -> Readings:
        """The trainer's levels at the last scrape, without those that it does not export."""
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

    async def _query_all(self) -> _Snapshot:
        began = self._clock.steady()
        alerts, targets, runtime = await asyncio.gather(
            self._get(_Alerts, "alerts", {}),
            self._get(_Targets, "targets", {"state": "active"}),
            self._get(_Runtime, "status/runtimeinfo", {}),
        )
        warm = not 0 <= self._clock.wall() - runtime.startTime.timestamp() < self._warm_up
        firing: dict[TrainerKey, list[Mapping[str, str]]] = {}
        for alert in alerts.alerts:
            if alert.state == "firing":
                firing.setdefault(_trainer(alert.labels), []).append(alert.labels)
        urls: dict[TrainerKey, set[str]] = {}
        for target in targets.activeTargets:
            parts = urlsplit(target.scrapeUrl)
            if parts.scheme in ("http", "https") and parts.hostname:
                urls.setdefault(_trainer(target.labels), set()).add(target.scrapeUrl)
        return _Snapshot(began, firing, urls, warm)

    async def _get(self, shape: type[_T], path: str, parameters: dict[str, str]) -> _T:
        url = f"{self._url}/api/v1/{path}"
        reply = await fetch(
            self._client, "GET", url, params=parameters, timeout=_TIMEOUT, max_bytes=_MAX_BYTES
        )
        if reply.status != 200:
            raise FetchError(
                f"Prometheus answered {reply.status}: {reply.body[:200].decode('utf-8', 'replace')}"
            )
        try:
            answer: _Answer[_T] = _Answer[shape].model_validate_json(reply.body)  # type: ignore[valid-type]
            return answer.data
        except ValidationError as error:
            raise FetchError(
                f"Prometheus answered {path} in another form: {error.error_count()} errors"
            ) from None


def _trainer(labels: Mapping[str, str]) -> TrainerKey:
    return TrainerKey(labels.get("job", ""), labels.get("instance", ""))
