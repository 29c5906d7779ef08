"""What follows an action: a mark in Grafana; if it did not help, a notification or the restart command."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timezone

import httpx

from heapwatch_receiver.fetch import FetchError, fetch
from heapwatch_receiver.ledger import ActionRecord, TrainerKey
from heapwatch_receiver.settings import Settings

_OUTPUT_KEPT = 1000
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,252}")


class EscalationError(Exception):
    """The escalation failed; the message gives the reason."""


async def notify(client: httpx.AsyncClient, settings: Settings, record: ActionRecord) -> None:
    """Post the alert TrainerCleanupEscalated, which resolves after the escalation's cooldown. Idempotent.

    Raises:
        EscalationError: Alertmanager did not accept it.

    """
    labels: dict[str, str] = {
        "alertname": "TrainerCleanupEscalated",
        "severity": "critical",
        "kind": "health",
        "job": record.trainer_job,
        "instance": record.trainer_instance,
        **record.concerns,
    }
    cause = record.labels.get("alertname", "an alert")
    alert = {
        "labels": labels,
        "annotations": {
            "summary": f"{record.trainer_instance} still alerts after its cleanup",
            "description": f"{cause} still fires after a cleanup. The receiver's page lists what was tried.",
            "runbook_url": f"{settings.runbooks_url.rstrip('/')}/TrainerCleanupEscalated.md",
        },
        "startsAt": _rfc3339(record.decided_at),
        "endsAt": _rfc3339(record.decided_at + settings.escalation_cooldown),
    }
    try:
        url = f"{settings.alertmanager_url.rstrip('/')}/api/v2/alerts"
        reply = await fetch(client, "POST", url, json=[alert], timeout=10, max_bytes=1 << 16)
    except FetchError as error:
        raise EscalationError(f"Alertmanager: {error}") from None
    if reply.status != 200:
        raise EscalationError(
            f"Alertmanager answered {reply.status}: {reply.body[:300].decode('utf-8', 'replace')}"
        )


async def restart(command: Sequence[str], trainer: TrainerKey, timeout: float) -> str:
    """Run the command without a shell in its own session; returns the end of its output.

    Raises:
        EscalationError: a label is no safe argument, the command failed, or it took over `timeout` seconds.

    """
    for value in (trainer.job, trainer.instance):
        if not _SAFE.fullmatch(value):
            raise EscalationError(
                f"{value!r} is not put into a command: letters, digits and . _ : - are allowed"
            )
    argv = [part.replace("{job}", trainer.job).replace("{instance}", trainer.instance) for part in command]
    environment = {name: value for name, value in os.environ.items() if name != "HEAPWATCH_TOKEN"}
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env=environment,
        )
    except OSError as error:
        raise EscalationError(f"{argv[0]}: {error}") from None
    try:
        output = await asyncio.wait_for(_last_output(process), timeout)
    except asyncio.TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise EscalationError(f"{argv[0]} did not end within {timeout:g} s") from None
    if process.returncode != 0:
        raise EscalationError(f"{argv[0]} exited with {process.returncode}: {output}")
    return output


async def _last_output(process: asyncio.subprocess.Process) -> str:
    assert process.stdout is not None
    tail = b""
    while chunk := await process.stdout.read(4096):
        tail = (tail + chunk)[-_OUTPUT_KEPT:]
    await process.wait()
    return tail.decode("utf-8", "replace").strip()


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


def _rfc3339(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat()
