"""Template variables, and the matchers that queries write them into."""

from typing import Any

from grafanalib import core

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SELECTED = 'job=~"$job", instance=~"$instance"'

ON_TIME_RANGE_CHANGE = 2
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


def job(metric: str) -> dict[str, Any]:
    """The scrape jobs that have this metric."""
    return _label_values("job", f"label_values({metric}, job)")


def instance(metric: str) -> dict[str, Any]:
    """The instances of the chosen jobs that have this metric."""
    return _label_values("instance", f'label_values({metric}{{job=~"$job"}}, instance)')


def of(metric: str) -> list[dict[str, Any]]:
    """Data source, job and instance, the latter two read from this metric."""
    return [datasource(), job(metric), instance(metric)]


def _label_values(name: str, query: str) -> dict[str, Any]:
    template = core.Template(
        name=name,
        label=name.title(),
        dataSource=DATASOURCE,
        query={"query": query, "refId": f"{name}-values"},
        includeAll=True,
        allValue=".+",
        multi=True,
        refresh=ON_TIME_RANGE_CHANGE,
    )
    definition = {
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "definition": query,
        "regex": "",
    }
    return _modern(template, **definition)


def _modern(template: core.Template, **changes: Any) -> dict[str, Any]:
    document: dict[str, Any] = {**template.to_json_data(), **changes}
    return {key: value for key, value in document.items() if key not in LEGACY_KEYS and value is not None}
