"""The viewer's web application."""

from collections.abc import Mapping
from pathlib import Path

from fastapi import Request, Response
from fastapi.responses import RedirectResponse
from nicegui import app, ui
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from heapwatch.http.addresses import known_names
from heapwatch.http.asgi import LIMITS, KnownNames
from heapwatch_viewer.address import State
from heapwatch_viewer.model import HOME, Dashboard, load
from heapwatch_viewer.page import DashboardPage
from heapwatch_viewer.prometheus import Prometheus
from heapwatch_viewer.settings import Settings

STYLE = Path(__file__).with_name("style.css").read_text()
FAVICON = Path(__file__).with_name("favicon.svg")
# Whether anybody can see the page.
ON_VISIBILITY = "document.addEventListener('visibilitychange', () => emitEvent('watched', !document.hidden))"
FIT = f"<script>{Path(__file__).with_name('fit.js').read_text()}</script>"


def serve(settings: Settings) -> None:
    """Serve until stopped. Raises ValueError: no dashboards, or a faulty one."""
    boards = load(settings.folder)
    prometheus = Prometheus(settings.prometheus_url)
    app.add_middleware(KnownNames, names=known_names(settings.host))
    _add_pages(boards, prometheus)
    app.on_shutdown(prometheus.close)
    ui.run(
        host=settings.host,
        port=settings.port,
        title="Heapwatch",
        favicon=FAVICON,
        show=False,
        reload=False,
        show_welcome_message=False,
        **LIMITS,
    )


def _add_pages(boards: Mapping[str, Dashboard], prometheus: Prometheus) -> None:
    @app.get("/healthz")
    def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics")
    def metrics() -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.get("/")
    def index() -> RedirectResponse:
        return RedirectResponse(f"/d/{HOME}")

    @ui.page("/d/{uid}")
    async def dashboard(request: Request, uid: str) -> None:
        page = _dashboard(request, uid, boards, prometheus)
        if page is not None:
            await _fill(page)


def _dashboard(
    request: Request, uid: str, boards: Mapping[str, Dashboard], prometheus: Prometheus
) -> DashboardPage | None:
    """The page of a dashboard, still without data; None when there is no such dashboard."""
    ui.add_css(STYLE)
    ui.add_head_html(FIT)
    if uid not in boards:
        ui.label(f"There is no dashboard {uid}; there are: {', '.join(boards)}").classes("note error")
        return None
    board, given, problem = boards[uid], request.query_params.multi_items(), ""
    try:
        state = State.read(board, given)
    except ValueError as wrong:
        problem = f"{wrong}; showing the dashboard's own range instead"
        state = State.read(board, [(key, value) for key, value in given if key not in ("from", "to")])
    ui.page_title(f"{board.title} · Heapwatch")
    page = DashboardPage(board, boards, prometheus, state, problem)
    page.build()
    return page


async def _fill(page: DashboardPage) -> None:
    """Ask for the page's data once its browser is connected, and stop when that leaves."""
    client = ui.context.client
    await client.connected()
    if client.is_deleted:
        return
    client.on_delete(lambda: page.stop())
    ui.on("watched", lambda event: page.watch(bool(event.args)))
    ui.run_javascript(ON_VISIBILITY)
    page.reload()
