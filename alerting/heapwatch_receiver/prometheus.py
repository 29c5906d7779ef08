"""Queries to Prometheus: firing alerts, and scrape URLs of trainers."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from heapwatch_receiver.decide import Facts, TrainerKey
from heapwatch_receiver.fetch import FetchError, fetch

log = logging.getLogger("heapwatch.receiver")

_TIMEOUT = 10.0
_MAX_BYTES = 32 << 20


@dataclass(frozen=True)
class Prometheus:
    """Prometheus's HTTP API at this URL."""

    client: httpx.AsyncClient
    url: str

    async def facts(self, trainer: TrainerKey) -> Facts | None:
        """The trainer's firing alerts and its scrape URL now; None if Prometheus gives no usable answer."""
        try:
            alerts = (await self._get("alerts"))["alerts"]
            targets = (await self._get("targets?state=active"))["activeTargets"]
            firing = [
                one["labels"]
                for one in alerts
                if one["state"] == "firing" and _trainer(one["labels"]) == trainer
            ]
            urls = {str(one["scrapeUrl"]) for one in targets if _trainer(one["labels"]) == trainer}
        except (FetchError, ValueError, LookupError, TypeError, AttributeError) as error:
            log.warning("Prometheus gives no usable answer about %s: %r", trainer, error)
            return None
        return Facts(firing, urls.pop() if len(urls) == 1 else None)

    async def _get(self, path: str) -> Any:
        url = f"{self.url.rstrip('/')}/api/v1/{path}"
        body = await fetch(self.client, "GET", url, timeout=_TIMEOUT, max_bytes=_MAX_BYTES)
        return json.loads(body)["data"]


def _trainer(labels: Mapping[str, str]) -> TrainerKey:
    return TrainerKey(labels.get("job", ""), labels.get("instance", ""))
