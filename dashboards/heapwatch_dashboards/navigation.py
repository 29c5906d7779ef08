"""Template variables, and links between the dashboards that keep time range and selection."""

from typing import Any

from grafanalib import core

from .promql import NAME

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

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
ON_TIME_RANGE_CHANGE = 2
ALPHABETICAL = 1
HIDDEN = 2


def variables_of_targets() -> list[dict[str, Any]]:
    """Data source, job and instance of everything that is scraped."""
    return [
        _datasource(),
        _several("job", "Job", "label_values(up, job)"),
        _several("instance", "Instance", 'label_values(up{job=~"$job"}, instance)'),
    ]


def variables_of_trainers() -> list[dict[str, Any]]:
    """Data source and trainer by name, the latest process of each address; links also keep the job."""
    seen = 'max_over_time(timestamp(job:trainer:name{job=~"$job"})[$__range:1m])'
    names = '/trainer_name="(?<text>[^"]+)|instance="(?<value>[^"]+)/g'
    return [
        _datasource(),
        _several("job", "Job", f"label_values({NAME}, job)", hide=HIDDEN),
        _several("instance", "Trainer", f"query_result(sort_desc({seen}))", regex=names, sort=ALPHABETICAL),
    ]


def links_between_dashboards(uid: str) -> list[dict[str, Any]]:
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


def link_to_trainer() -> dict[str, Any]:
    """A link to the page of the trainer of a table's row."""
    trainer = "var-job=${__data.fields.job}&var-instance=${__data.fields.instance}"
    url = f"/d/heapwatch-trainer?var-datasource=${{datasource}}&{trainer}&${{__url_time_range}}"
    return {"title": "Open Trainer", "url": url}


def _datasource() -> dict[str, Any]:
    """The Prometheus to ask; the provisioned one is called Prometheus and has the uid `prometheus`."""
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {"selected": False, "text": "Prometheus", "value": "prometheus"},
        "refresh": 1,
    }


def _several(
    name: str, label: str, query: str, regex: str = "", sort: int = 0, hide: int = 0
) -> dict[str, Any]:
    """A variable of which several values can be chosen, or all."""
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"{name}-values"},
        "definition": query,
        "regex": regex,
        "sort": sort,
        "hide": hide,
        "refresh": ON_TIME_RANGE_CHANGE,
        "multi": True,
        "includeAll": True,
        "allValue": ".+",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
