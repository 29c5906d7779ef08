"""Template variables, and links between the dashboards that keep time range and selection."""

from typing import Any

from grafanalib import core

from .promql import NAME, PROCESS, STEP

TAG = "heapwatch"
TITLES = {
    "heapwatch-fleet": "Fleet",
    "heapwatch-trainer": "Trainer",
    "heapwatch-machine": "Machine",
    "heapwatch-world": "World",
    "heapwatch-buffers": "Buffers and objects",
    "heapwatch-phases": "Phases",
    "heapwatch-gpu": "GPU",
    "heapwatch-alerts": "Alerts and cleanups",
    "heapwatch-stack": "Stack health",
}
STACK = "heapwatch-stack"
FLEET = "heapwatch-fleet"
MACHINE = "heapwatch-machine"
# They choose among others than a trainer's pages: going there or leaving them, the choice does not travel.
APART = {STACK, FLEET, MACHINE}
# About all trainers, or some of them. The other pages are about one: a sum of two trainers has no limit.
OF_SEVERAL = (FLEET, "heapwatch-alerts")

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
ON_TIME_RANGE_CHANGE = 2
HIDDEN = 2


def variables(uid: str) -> list[dict[str, Any]]:
    """Data source, and what this page is about."""
    if uid == STACK:
        return [
            _datasource(),
            _variable("job", "Job", "label_values(up, job)"),
            _variable("instance", "Instance", 'label_values(up{job=~"$job"}, instance)'),
        ]
    # By name, the fastest leak first; of an address the latest process. Links also keep the job.
    seen = f'max_over_time(timestamp({NAME}{{job=~"$job"}})[$__range:{STEP}])'
    # Other pages have machines last: most of what they show is not known of one.
    about, kind, others = "Trainer", "unless", f" or 0 * {seen}"
    if uid == MACHINE:
        about, kind, others = "Machine", "and", ""
    seen = f'({seen} {kind} on ({PROCESS}) last_over_time(trainer_info{{framework="machine"}}[$__range]))'
    leaks = f'max by ({PROCESS}) (trainer_memory_verdict{{job=~"$job", verdict="leak"}})'
    grows = f'max by ({PROCESS}) (trainer_memory_growth_bytes_per_minute{{job=~"$job"}})'
    first = f"{seen} + on ({PROCESS}) group_left () (1e12 * {leaks} + {grows}) or {seen}{others}"
    names = '/trainer_name="(?<text>[^"]+)|instance="(?<value>[^"]+)/g'
    return [
        _datasource(),
        _variable("job", "Job", f"label_values({NAME}, job)", hide=HIDDEN),
        _variable("instance", about, f"query_result(sort_desc({first}))", names, several=uid in OF_SEVERAL),
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
            includeVars=not APART & {uid, other},
        ).to_json_data()
        for other, title in TITLES.items()
        if other != uid
    ]


def link_to_page(page: str = "trainer") -> dict[str, Any]:
    """A link to the page of the trainer, or the machine, of a table's row."""
    trainer = "var-job=${__data.fields.job}&var-instance=${__data.fields.instance}"
    url = f"/d/heapwatch-{page}?var-datasource=${{datasource}}&{trainer}&${{__url_time_range}}"
    return {"title": "Open its page", "url": url}


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


def _variable(
    name: str, label: str, query: str, regex: str = "", hide: int = 0, *, several: bool = True
) -> dict[str, Any]:
    """A variable of which one value is chosen, the first if none is; or `several`, and all if none is."""
    every = {"allValue": ".+", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": f"{name}-values"},
        "definition": query,
        "regex": regex,
        "sort": 0,
        "hide": hide,
        "refresh": ON_TIME_RANGE_CHANGE,
        "multi": several,
        "includeAll": several,
        **(every if several else {"current": {}}),
    }
