"""Links between the dashboards; time range, data source, job and instance travel along."""

from typing import Any

from grafanalib import core

TAG = "heapwatch"

TITLES = {
    "heapwatch-fleet": "Fleet",
    "heapwatch-trainer": "Trainer",
    "heapwatch-world": "World",
    "heapwatch-buffers": "Buffers and objects",
    "heapwatch-phases": "Phases",
    "heapwatch-gpu": "GPU",
    "heapwatch-alerts": "Alerts and cleanups",
    "heapwatch-stack": "Stack health",
}

# The stack's jobs and instances are not the trainers': going there or leaving it, the choice does not travel.
# Fleet is about all trainers.
STACK = "heapwatch-stack"
FLEET = "heapwatch-fleet"


def between_dashboards(uid: str) -> list[dict[str, Any]]:
    """The bar of links at the top of a dashboard: every other dashboard."""
    return [
        core.DashboardLink(
            type="link",
            title=title,
            uri=f"/d/{other}",
            icon="dashboard",
            keepTime=True,
            includeVars=STACK not in (uid, other) and other != FLEET,
        ).to_json_data()
        for other, title in TITLES.items()
        if other != uid
    ]


def from_series(uid: str) -> dict[str, Any]:
    """A data link from a series to that dashboard for the series' own trainer."""
    return _data_link(uid, "${__field.labels.job}", "${__field.labels.instance}")


def from_row(uid: str) -> dict[str, Any]:
    """A data link from a table's row to that dashboard for the row's own trainer."""
    return _data_link(uid, "${__data.fields.job}", "${__data.fields.instance}")


def _data_link(uid: str, job: str, instance: str) -> dict[str, Any]:
    url = (
        f"/d/{uid}?var-datasource=${{datasource}}&var-job={job}&var-instance={instance}&${{__url_time_range}}"
    )
    link: dict[str, Any] = core.DataLink(title=f"Open {TITLES[uid]}", linkUrl=url).to_json_data()
    return link
