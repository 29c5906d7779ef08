"""Events marked over the panels that they concern: leaks and other alerts, cleanups, restarts.

Each is a moment. Grafana fills the time between two samples of one event on every panel, so a query gives one
sample an event.
"""

from collections.abc import Sequence
from typing import Any

from . import colors
from .queries import alerts, trainers
from .variables import DATASOURCE


def of_trainers(panels: Sequence[int]) -> list[dict[str, Any]]:
    """Alerts, cleanups and restarts, on the panels with these ids; minor alerts are off until switched on."""
    alert = ("{{alertname}}", "{{instance}}: {{resource}} {{component}}", panels)
    return [
        _annotation("Leaks and critical alerts", alerts.MAJOR_ALERT_STARTS, colors.CRITICAL, *alert),
        _annotation("Other alerts", alerts.MINOR_ALERT_STARTS, colors.WARNING, *alert, enabled=False),
        _annotation(
            "Cleanups",
            alerts.CLEANUP_EVENTS,
            colors.GOOD,
            "Cleanup",
            "{{action}} cleanup of {{instance}}",
            panels,
        ),
        _annotation(
            "Restarts", trainers.RESTARTS, colors.SKY, "Start", "{{instance}} started", panels, is_time=True
        ),
    ]


def _annotation(
    name: str,
    expression: str,
    color: str,
    title: str,
    text: str,
    panels: Sequence[int],
    *,
    enabled: bool = True,
    is_time: bool = False,
) -> dict[str, Any]:
    """One sample an event; with `is_time` its value is the event's time, in milliseconds."""
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": enabled,
        "hide": False,
        "iconColor": color,
        "expr": expression,
        "step": "60s",
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": "instance",
        "useValueForTime": is_time,
        "filter": {"exclude": False, "ids": list(panels)},
    }
