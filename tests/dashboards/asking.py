"""Asking Prometheus what a panel asks."""

import json
import time
import urllib.parse
import urllib.request
from typing import Any

from tests.dashboards.documents import Target, interpolate


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
