"""The generated dashboards, walked: panels, targets, and queries as Prometheus would get them."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from heapwatch_dashboards import boards

Json = dict[str, Any]

DOCUMENTS: dict[str, Json] = {dashboard.uid: dashboard.render() for dashboard in boards.ALL}


class Target(NamedTuple):
    """One query and where it is shown."""

    dashboard: str
    panel: Json
    target: Json

    def __str__(self) -> str:
        return f"{self.dashboard} / {self.panel['title']} / {self.target['refId']}"


def panels(document: Json) -> list[Json]:
    """Every panel that is not a heading, those inside collapsed rows too."""
    return [
        panel for top in document["panels"] for panel in (top["panels"] if top["type"] == "row" else [top])
    ]


def targets() -> list[Target]:
    """Every query of every panel."""
    return [
        Target(uid, panel, target)
        for uid, document in DOCUMENTS.items()
        for panel in panels(document)
        for target in panel["targets"]
    ]


def expressions() -> Iterator[tuple[str, str]]:
    """Where it is used and the PromQL, of panels and of annotations."""
    for target in targets():
        yield str(target), target.target["expr"]
    for uid, document in DOCUMENTS.items():
        for annotation in document["annotations"]["list"]:
            yield f"{uid} / annotation {annotation['name']}", annotation["expr"]


def interpolate(
    expression: str, *, step: int = 60, range_seconds: int = 3 * 3600, scrape: int = 15, instance: str = ".+"
) -> str:
    """The expression with All or one instance chosen, as Grafana sends it; the step in seconds.

    `$__rate_interval` is max(step + scrape interval, 4 x scrape interval):
    https://grafana.com/docs/grafana/latest/datasources/prometheus/template-variables/
    """
    values = {
        "$__rate_interval": f"{max(step + scrape, 4 * scrape)}s",
        "$__interval": f"{step}s",
        "$__range": f"{range_seconds}s",
        "$job": ".+",
        "$instance": instance,
    }
    return re.sub(r"\$\w+", lambda match: values.get(match.group(), match.group()), expression)
