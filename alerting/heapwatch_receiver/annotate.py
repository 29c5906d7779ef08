"""Grafana annotations: a mark on every dashboard for each action."""

from __future__ import annotations

import httpx

from heapwatch_receiver.fetch import FetchError, fetch
from heapwatch_receiver.ledger import ActionRecord


async def annotate(client: httpx.AsyncClient, grafana_url: str, token: str, record: ActionRecord) -> None:
    """Mark the action on Grafana's time axis.

    Source: https://grafana.com/docs/grafana/latest/developers/http_api/annotations/

    Raises:
        FetchError: Grafana did not accept it.

    """
    freed = "" if record.freed_bytes is None else f", {record.freed_bytes / 1e6:.1f} MB freed"
    reply = await fetch(
        client,
        "POST",
        f"{grafana_url.rstrip('/')}/api/annotations",
        timeout=10,
        max_bytes=1 << 16,
        headers={"Authorization": f"Bearer {token}"},
        json={
            "time": int(record.decided_at * 1000),
            "timeEnd": int((record.finished_at or record.decided_at) * 1000),
            "tags": ["heapwatch", "cleanup", record.action, str(record.result), record.trainer_instance],
            "text": f"{record.action} on {record.trainer_instance}: {record.result}{freed}. {record.detail}",
        },
    )
    if reply.status != 200:
        raise FetchError(f"Grafana answered {reply.status}: {reply.body[:200].decode('utf-8', 'replace')}")
