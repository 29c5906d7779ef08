"""Asking Prometheus what a panel asks."""

import json
import time
import urllib.parse
import urllib.request
from typing import Any

from tests.dashboards.documents import DOCUMENTS, Json, Target, interpolate, panels


def ask(url: str, path: str, **parameters: Any) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}") as answer:
        result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return result


def run(url: str, target: Target, hours: float = 3, instance: str = ".+") -> list[dict[str, Any]]:
    """What a panel gets for its query over the last hours, a step a minute, with this trainer chosen."""
    now = time.time()
    expression = interpolate(
        target.target["expr"], step=60, range_seconds=int(hours * 3600), instance=instance
    )
    if target.target["instant"]:
        return ask(url, "query", query=expression, time=now)
    return ask(url, "query_range", query=expression, start=now - hours * 3600, end=now, step=60)


def panel(board: str, title: str) -> Json:
    """The panel with this title."""
    return next(one for one in panels(DOCUMENTS[f"heapwatch-{board}"]) if one["title"] == title)


def asked(
    url: str, board: str, title: str, ref: str = "A", of: str = ".+", hours: float = 1.5
) -> list[dict[str, Any]]:
    """The answer to one query of a panel, for one instance or all."""
    shown = panel(board, title)
    (target,) = (target for target in shown["targets"] if target["refId"] == ref)
    return run(url, Target(f"heapwatch-{board}", shown, target), hours, of)


def values(series: list[dict[str, Any]]) -> list[float]:
    """All values, in the order of the series."""
    return [float(value) for one in series for _, value in one.get("values", [one.get("value")])]


def column(url: str, board: str, title: str, name: str, of: str = ".+") -> list[dict[str, Any]]:
    """The answer to the query that fills this column of a table."""
    renamed = panel(board, title)["transformations"][-1]["options"]["renameByName"]
    (field,) = (field for field, shown in renamed.items() if shown == name)
    return asked(url, board, title, field.removeprefix("Value #"), of)
