"""The receiver's HTTP interface."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from prometheus_client.exposition import choose_encoder
from pydantic import ValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException

from heapwatch import data
from heapwatch.http.addresses import allowed_hosts, known_names
from heapwatch.http.asgi import KnownNames
from heapwatch.http.guards import token_warning
from heapwatch.http.signing import webhook_token
from heapwatch_receiver import audit, fetch, ledger, page, targets
from heapwatch_receiver.clock import Clock
from heapwatch_receiver.metrics import Metrics
from heapwatch_receiver.payload import Notification, explain
from heapwatch_receiver.performer import Performer, failpoint
from heapwatch_receiver.prometheus import Prometheus
from heapwatch_receiver.settings import Settings
from heapwatch_receiver.store import Store, StoreUnavailable
from heapwatch_receiver.worker import Worker

log = logging.getLogger("heapwatch.receiver")
_PROBLEM = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
_ACCEPTED = {"type": "object", "properties": {"alerts": {"type": "integer"}}, "required": ["alerts"]}
_RUNBOOKS = data.path("docs", "runbooks")


def create_app(settings: Settings, token: str) -> FastAPI:
    """The application; its worker runs during its lifespan.

    Raises:
        SettingsError: a secret cannot be read.
        StoreUnusable: the database cannot be used.

    """
    clock = Clock()
    store = Store(settings.database, clock)
    store.open()
    metrics = Metrics(store, clock, settings.lost_dirs)
    client = fetch.client()
    prometheus = Prometheus(client, settings.prometheus_url, clock, warm_up=settings.prometheus_warm_up)
    worker = Worker(Performer(settings, store, clock, client, prometheus, metrics, token))

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        store.start()
        working = asyncio.create_task(worker.run())
        working.add_done_callback(_died)
        yield
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working
        await client.aclose()
        await asyncio.to_thread(store.stop)

    app = FastAPI(title="Heapwatch receiver", version="1", lifespan=lifespan, docs_url=None, redoc_url=None)
    _answer_errors_in_json(app, metrics)
    _describe(app)
    if warning := token_warning(token):
        log.warning("%s", warning)
    app.add_middleware(KnownNames, names=known_names(settings.bind))

    _add_alerts(app, settings, token, store, clock, metrics, worker)
    names = {*allowed_hosts(), settings.bind, socket.gethostname().lower()}
    targets.add_routes(app, targets.Registrations(settings.silent_dir), token, names, settings.ports)

    _add_pages(app, settings, store, metrics)
    return app


def _add_alerts(
    app: FastAPI,
    settings: Settings,
    token: str,
    store: Store,
    clock: Clock,
    metrics: Metrics,
    worker: Worker,
) -> None:
    async def alerts(request: Request) -> Response:
        """Accept a notification of Alertmanager: 200 once it is on disk, 5xx only if a retry may help."""
        _authorize(request, token)
        notification = _parse(await _body(request, settings.max_body_bytes))
        beats = [a for a in notification.alerts if a.labels.get("alertname") == settings.watchdog_alertname]
        others = [a for a in notification.alerts if a.labels.get("alertname") != settings.watchdog_alertname]

        def write(connection: Any) -> list[Any]:
            if any(alert.status == "firing" for alert in beats):
                ledger.beat(connection, clock)
            refusals = ledger.receive(connection, others, clock)
            failpoint("receiving")
            return refusals

        try:
            refusals = await store.run(write)
        except StoreUnavailable as error:
            log.error("database: %s", error)
            raise HTTPException(503, f"nothing was written: {error}", {"Retry-After": "5"}) from None
        failpoint("received")
        metrics.received.inc(len(others))
        metrics.refused(refusals)
        if len(refusals) < len(others):
            worker.wake()
        return JSONResponse({"alerts": len(notification.alerts)})

    # A plain Starlette route: FastAPI's handling of parameters would take a fifth of the time per alert.
    app.add_route("/alerts", alerts, methods=["POST"])


def _add_pages(app: FastAPI, settings: Settings, store: Store, metrics: Metrics) -> None:
    @app.get("/actions", responses=_problems(422, 503))
    def actions(chosen: Annotated[audit.Filter, Query()]) -> audit.Page:
        """Every decision, newest first."""
        with store.read() as connection:
            return audit.page(connection, chosen)

    @app.get("/", response_class=HTMLResponse, responses=_problems(422, 503))
    def overview(chosen: Annotated[audit.Filter, Query()]) -> HTMLResponse:
        """The same as an HTML page."""
        with store.read() as connection:
            html = page.render(audit.page(connection, chosen), audit.decisions(connection), chosen, settings)
        return HTMLResponse(html, headers={"Content-Security-Policy": page.CONTENT_SECURITY_POLICY})

    @app.get("/runbooks/{name}", response_class=PlainTextResponse, responses=_problems(404, 422))
    def runbook(name: str) -> str:
        """The runbook `<Alert>.md`, to which the links of alerts point."""
        if name not in {file.name for file in _RUNBOOKS.glob("*.md")}:
            raise HTTPException(404, "there is no such runbook")
        return (_RUNBOOKS / name).read_text(encoding="utf-8")

    @app.get("/healthz", responses=_problems(503))
    def healthz() -> dict[str, str]:
        """Whether the database answers."""
        with store.read() as connection:
            connection.execute("SELECT 1 FROM clock").fetchone()
        return {"status": "ok"}

    @app.get("/metrics", response_class=PlainTextResponse)
    def exposition(request: Request) -> Response:
        """Prometheus metrics, text or OpenMetrics."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return Response(encode(metrics.registry), headers={"Content-Type": content_type})


def _authorize(request: Request, token: str) -> None:
    """Accept the token derived for Alertmanager or the secret itself, compared in constant time."""
    scheme, _, shown = request.headers.get("Authorization", "").partition(" ")
    allowed = [hmac.compare_digest(shown.encode(), one.encode()) for one in (webhook_token(token), token)]
    if scheme.lower() != "bearer" or not any(allowed):
        challenge = {"WWW-Authenticate": "Bearer"}
        raise HTTPException(401, "a bearer token is needed, the one in the receiver's token file", challenge)


async def _body(request: Request, limit: int) -> bytes:
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "Content-Type: application/json is allowed")
    return await targets.read_body(request, limit)


def _parse(body: bytes) -> Notification:
    try:
        return Notification.model_validate_json(body)
    except ValidationError as error:
        raise HTTPException(
            400, f"not an Alertmanager webhook of version 4: {explain(error.errors(include_url=False))}"
        ) from None


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI descriptions of error responses, which are always JSON."""
    return {
        str(code): {"description": HTTPStatus(code).phrase, "content": _json("Problem")} for code in codes
    }


def _json(model: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model}"}}}


def _describe(app: FastAPI) -> None:
    """Add POST /alerts and its token to the OpenAPI document."""
    generate = app.openapi
    notification = Notification.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = {**notification.pop("$defs"), "Notification": notification}
    post = {
        "operationId": "alerts",
        "summary": "Take an Alertmanager notification",
        "security": [{"token": []}],
        "requestBody": {"required": True, "content": _json("Notification")},
        "responses": {
            "200": {"description": "They are on disk.", "content": _json("Accepted")},
            **_problems(400, 401, 413, 415, 503),
        },
    }

    def openapi() -> dict[str, Any]:
        document = generate()
        document["paths"]["/alerts"] = {"post": post}
        document["components"]["schemas"].update(schemas, Problem=_PROBLEM, Accepted=_ACCEPTED)
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        return document

    app.openapi = openapi  # type: ignore[method-assign]


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
    async def unavailable(_: Request, error: StoreUnavailable) -> JSONResponse:
        return JSONResponse({"error": f"the database cannot be read: {error}"}, 503)


def _died(working: asyncio.Task[None]) -> None:
    if not working.cancelled() and working.exception():
        log.critical(
            "the worker ended; stopping so that a supervisor starts afresh", exc_info=working.exception()
        )
        os.kill(os.getpid(), signal.SIGTERM)
