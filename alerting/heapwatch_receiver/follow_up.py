"""What follows a cleanup that did not help: a notification or the restart command."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import httpx

from heapwatch_receiver.decide import Alert, TrainerKey
from heapwatch_receiver.fetch import fetch
from heapwatch_receiver.settings import Settings

RESTART_SECONDS = 120.0  # for the command; a trainer's own start is not waited for
_NOTIFIED_SECONDS = 3600.0  # after which the posted alert ends by itself
_OUTPUT_KEPT = 1000
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\-]{0,252}")


class EscalationError(Exception):
    """The trainer was not restarted; the message gives the reason."""


async def notify(client: httpx.AsyncClient, settings: Settings, alert: Alert, decided_at: datetime) -> None:
    """Post the alert TrainerCleanupEscalated, which ends after an hour. Idempotent.

    Raises:
        FetchError: Alertmanager did not accept it.

    """
    labels = {
        "alertname": "TrainerCleanupEscalated",
        "severity": "critical",
        "kind": "health",
        **alert.trainer._asdict(),
        **alert.concerns,
    }
    cause = alert.labels.get("alertname", "an alert")
    escalated = {
        "labels": labels,
        "annotations": {
            "summary": f"{alert.trainer.instance} still alerts after its cleanup",
            "description": f"{cause} still fires after a cleanup. The receiver's page lists what was tried.",
            "runbook_url": f"{settings.runbooks_url.rstrip('/')}/TrainerCleanupEscalated.md",
        },
        "startsAt": decided_at.isoformat(),
        "endsAt": (decided_at + timedelta(seconds=_NOTIFIED_SECONDS)).isoformat(),
    }
    url = f"{settings.alertmanager_url.rstrip('/')}/api/v2/alerts"
    await fetch(client, "POST", url, json=[escalated], timeout=10, max_bytes=1 << 16)


async def restart(command: Sequence[str], trainer: TrainerKey) -> str:
    """Run the command without a shell in its own session; returns the end of its output.

    Raises:
        EscalationError: a label is no safe argument, the command failed, or it took over two minutes.

    """
    for value in trainer:
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
        output = await asyncio.wait_for(_last_output(process), RESTART_SECONDS)
    except asyncio.TimeoutError:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        raise EscalationError(f"{argv[0]} did not end within {RESTART_SECONDS:g} s") from None
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
