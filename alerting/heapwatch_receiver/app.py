"""The receiver's HTTP interface."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import signal
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client.exposition import choose_encoder
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from heapwatch import data
from heapwatch.http.addresses import known_names
from heapwatch.http.asgi import KnownNames
from heapwatch.http.signing import webhook_token
from heapwatch_receiver import audit, fetch, ledger, page
from heapwatch_receiver.decide import Refuse
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.payload import Notification, explain
from heapwatch_receiver.performer import Performer
from heapwatch_receiver.prometheus import Prometheus
from heapwatch_receiver.settings import Settings
from heapwatch_receiver.store import Store, StoreUnavailable
from heapwatch_receiver.worker import Worker

log = logging.getLogger("heapwatch.receiver")
MAX_BODY_BYTES = 16 << 20  # 20,000 alerts of 800 bytes: every trainer of a large fleet in one group
_WATCHDOG = "Watchdog"  # as prometheus/rules/health.yml calls it
_BEARER = HTTPBearer(auto_error=False)
_RUNBOOKS = data.path("docs", "runbooks")


def create_app(settings: Settings, token: str) -> FastAPI:
    """The application; its worker runs during its lifespan.

    Raises:
        SettingsError: a secret cannot be read.
        StoreUnusable: the database cannot be used.

    """
    store = Store(settings.database)
    metrics = Metrics(store, settings.lost_dirs)
    client = fetch.client()
    prometheus = Prometheus(client, settings.prometheus_url)
    worker = Worker(Performer(settings, store, client, prometheus, metrics, token))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        working = asyncio.create_task(worker.run())
        working.add_done_callback(_died)
        yield
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        await client.aclose()
        store.close()

    app = FastAPI(title="Heapwatch receiver", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    _answer_errors_in_json(app, metrics)
    app.add_middleware(KnownNames, names=known_names(settings.bind))

    _add_alerts(app, token, store, metrics, worker)
    _add_pages(app, settings, store, metrics)
    return app


def _add_alerts(app: FastAPI, token: str, store: Store, metrics: Metrics, worker: Worker) -> None:
    allowed = [one.encode() for one in (webhook_token(token), token)]

    # The body is read by hand: without the token nothing of it is, and then up to a limit.
    @app.post("/alerts")
    async def alerts(
        request: Request, shown: Annotated[HTTPAuthorizationCredentials | None, Security(_BEARER)]
    ) -> dict[str, int]:
        """Accept a notification of Alertmanager: 200 once it is on disk, 5xx only if a retry may help."""
        credentials = shown.credentials.encode() if shown else b""
        if not any(hmac.compare_digest(credentials, one) for one in allowed):
            raise HTTPException(
                401,
                "a bearer token is needed, the one in the receiver's token file",
                {"WWW-Authenticate": "Bearer"},
            )
        notification = await _read(request)
        trainer_alerts = [one for one in notification.alerts if one.labels.get("alertname") != _WATCHDOG]

        def write(connection: sqlite3.Connection) -> list[Refuse]:
            if any(one.labels.get("alertname") == _WATCHDOG for one in notification.alerts):
                ledger.beat(connection)
            return ledger.receive(connection, trainer_alerts)

        refusals = await store.run(write)
        metrics.refused(refusals)
        if len(refusals) < len(trainer_alerts):
            worker.wake()
        return {"alerts": len(notification.alerts)}


def _add_pages(app: FastAPI, settings: Settings, store: Store, metrics: Metrics) -> None:
    @app.get("/actions")
    def actions(chosen: Annotated[audit.Filter, Query()]) -> audit.Page:
        """Every decision, newest first."""
        with store.transaction() as connection:
            return audit.page(connection, chosen)

    @app.get("/", response_class=HTMLResponse)
    def overview(chosen: Annotated[audit.Filter, Query()]) -> HTMLResponse:
        """The same as an HTML page."""
        with store.transaction() as connection:
            html = page.render(audit.page(connection, chosen), chosen, settings)
        return HTMLResponse(html, headers={"Content-Security-Policy": page.CONTENT_SECURITY_POLICY})

    @app.get("/runbooks/{name}", response_class=PlainTextResponse)
    def runbook(name: str) -> str:
        """The runbook `<Alert>.md`, to which the links of alerts point."""
        if name not in {file.name for file in _RUNBOOKS.glob("*.md")}:
            raise HTTPException(404, "there is no such runbook")
        return (_RUNBOOKS / name).read_text(encoding="utf-8")

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        """Whether the database answers."""
        with store.transaction() as connection:
            connection.execute("SELECT at FROM heartbeat").fetchone()
        return {"status": "ok"}

    @app.get("/metrics", response_class=PlainTextResponse)
    def exposition(request: Request) -> Response:
        """Prometheus metrics, text or OpenMetrics."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(encode(metrics.registry), headers={"Content-Type": content_type})


async def _read(request: Request) -> Notification:
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type: application/json is allowed")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(
                413, f"a body of up to {MAX_BODY_BYTES} bytes is allowed", {"Connection": "close"}
            )
    try:
        return Notification.model_validate_json(bytes(body))
    except ValidationError as error:
        raise HTTPException(
            400, f"not an Alertmanager webhook of version 4: {explain(error.errors(include_url=False))}"
        ) from None


def _answer_errors_in_json(app: FastAPI, metrics: Metrics) -> None:
    @app.exception_handler(StarletteHTTPException)
    async def refused(request: Request, error: StarletteHTTPException) -> JSONResponse:
        if request.url.path == "/alerts":
            metrics.rejected.labels(error.status_code).inc()
        return JSONResponse({"error": error.detail}, error.status_code, error.headers)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        return JSONResponse({"error": explain(error.errors())}, 422)

    @app.exception_handler(StoreUnavailable)
    async def unavailable(request: Request, error: StoreUnavailable) -> JSONResponse:
        log.error("database: %s", error)
        return await refused(request, HTTPException(503, f"the database: {error}", {"Retry-After": "5"}))


def _died(working: asyncio.Task[None]) -> None:
    if not working.cancelled() and working.exception():
        log.critical(
            "the worker ended; stopping so that a supervisor starts afresh", exc_info=working.exception()
        )
        os.kill(os.getpid(), signal.SIGTERM)
