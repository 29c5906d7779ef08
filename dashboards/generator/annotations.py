"""Events drawn over every panel of a trainer: alerts, cleanups, restarts."""

from typing import Any

from . import colors, queries
from .variables import DATASOURCE


def _annotation(
    name: str, expression: str, color: str, title: str, text: str, **options: Any
) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "expr": expression,
        "step": "60s",
        "titleFormat": title,
        "textFormat": text,
        "tagKeys": "instance",
        "useValueForTime": False,
        **options,
    }


def of_trainers() -> list[dict[str, Any]]:
    """Firing alerts as regions, cleanups as events, restarts at the time the process started."""
    return [
        _annotation(
            "Alerts",
            queries.ALERTS_FIRING,
            colors.CRITICAL,
            "{{alertname}}",
            "{{severity}} {{kind}}: {{resource}} {{component}}",
            tagKeys="instance,severity,kind",
        ),
        _annotation(
            "Cleanups", queries.CLEANUP_EVENTS, colors.GOOD, "Cleanup", "{{action}} cleanup of {{instance}}"
        ),
        _annotation(
            "Restarts",
            queries.RESTART_TIMES,
            colors.SKY,
            "Restart",
            "{{instance}} started",
            useValueForTime=True,
        ),
    ]
