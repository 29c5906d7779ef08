"""Template variables, and the matchers that queries write them into."""

from typing import Any

from grafanalib import core

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SELECTED = 'job=~"$job", instance=~"$instance"'

ON_TIME_RANGE_CHANGE = 2
ALPHABETICAL = 1
HIDDEN = 2
NAME = "job:trainer:name"
LEGACY_KEYS = ("useTags", "tagsQuery", "tagValuesQuery", "auto", "auto_min", "auto_count")


def datasource() -> dict[str, Any]:
    """The Prometheus to ask; the provisioned one is called Prometheus and has the uid `prometheus`."""
    template = core.Template(
        name="datasource",
        label="Data source",
        type="datasource",
        query="prometheus",
        refresh=1,
        default="Prometheus",
    )
    return _modern(template, current={"selected": False, "text": "Prometheus", "value": "prometheus"})


def of_targets() -> list[dict[str, Any]]:
    """Data source, job and instance of everything that is scraped."""
    return [
        datasource(),
        _several("job", "Job", "label_values(up, job)"),
        _several("instance", "Instance", 'label_values(up{job=~"$job"}, instance)'),
    ]


def of_trainers() -> list[dict[str, Any]]:
    """Data source and trainer, by name, the latest life of each address; the job only travels in links."""
    seen = 'max_over_time(timestamp(job:trainer:name{job=~"$job"})[$__range:1m])'
    names = '/trainer_name="(?<text>[^"]+)|instance="(?<value>[^"]+)/g'
    return [
        datasource(),
        _several("job", "Job", f"label_values({NAME}, job)", hide=HIDDEN),
        _several("instance", "Trainer", f"query_result(sort_desc({seen}))", regex=names, sort=ALPHABETICAL),
    ]


def _several(
    name: str, label: str, query: str, regex: str = "", sort: int = 0, hide: int = 0
) -> dict[str, Any]:
    template = core.Template(
        name=name,
        label=label,
        dataSource=DATASOURCE,
        query={"query": query, "refId": f"{name}-values"},
        includeAll=True,
        allValue=".+",
        multi=True,
        sort=sort,
        hide=hide,
        refresh=ON_TIME_RANGE_CHANGE,
    )
    definition = {
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "definition": query,
        "regex": regex,
    }
    return _modern(template, **definition)


def _modern(template: core.Template, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {**template.to_json_data(), **changes}
    return {key: value for key, value in document.items() if key not in LEGACY_KEYS and value is not None}
