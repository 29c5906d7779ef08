"""The viewer's web application."""

from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from nicegui import app, ui
from prometheus_client import CONTENT_TYPE_LATEST, Gauge, generate_latest
from starlette.middleware.trustedhost import TrustedHostMiddleware

from heapwatch_viewer.model import Dashboard, load
from heapwatch_viewer.page import DashboardPage, State
from heapwatch_viewer.prometheus import Prometheus
from heapwatch_viewer.settings import Settings

HOME = "heapwatch-fleet"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
STYLE = Path(__file__).with_name("style.css")
FAVICON = Path(__file__).with_name("favicon.svg")

_pages = Gauge("heapwatch_viewer_open_pages", "Dashboards open in browsers")


def serve(settings: Settings) -> None:
    """Serve until stopped. Raises ValueError when there are no dashboards to show."""
    boards = load(settings.folder)
    prometheus = Prometheus(settings.prometheus_url)
    home = HOME if HOME in boards else next(iter(boards))
    boards = _as_linked(boards, home)
    style = STYLE.read_text()
    if settings.host in LOOPBACK:
        # Other names that resolve here are somebody's page trying to read ours.
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*LOOPBACK, "[::1]"])

    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/")
    def index() -> RedirectResponse:
        return RedirectResponse(f"/d/{home}")

    @ui.page("/d/{uid}")
    @ui.page("/d/{uid}/{slug}")
    async def dashboard(request: Request, uid: str) -> None:
        ui.add_css(style)
        if uid not in boards:
            known = ", ".join(boards)
            ui.label(f"There is no dashboard {uid}; there are: {known}").classes("note error")
            return
        board, problem = boards[uid], ""
        try:
            state = State.read(board, request.query_params, request.query_params.multi_items())
        except ValueError as wrong:
            problem = f"{wrong}; showing the dashboard's own range instead"
            state = State.read(board, {}, request.query_params.multi_items())
        ui.page_title(f"{board.title} · Heapwatch")
        page = DashboardPage(board, boards, prometheus, state, problem)
        page.build()
        client = ui.context.client
        await client.connected()
        _pages.inc()
        client.on_delete(lambda: _pages.dec())
        await page.reload()

    app.on_shutdown(prometheus.close)
    ui.run(
        host=settings.host,
        port=settings.port,
        title="Heapwatch",
        favicon=FAVICON,
        show=False,
        reload=False,
        show_welcome_message=False,
    )


def _as_linked(boards: dict[str, Dashboard], home: str) -> dict[str, Dashboard]:
    """The dashboards in the order of the home dashboard's links, home first."""
    linked = [link["url"].removeprefix("/d/") for link in boards[home].links if link.get("url")]
    order = {uid: place for place, uid in enumerate([home, *linked])}
    return dict(sorted(boards.items(), key=lambda item: order.get(item[0], len(order))))
