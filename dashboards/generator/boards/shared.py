"""Panels and looks that several dashboards have in common."""

from .. import colors, links
from .. import queries as q
from ..empty import NO_CLEANUP, NOTHING_FIRES
from ..panel import BYTES, COUNT, Json, Panel, Query
from ..panels import time_series
from ..tables import Column, table

USED = colors.thresholds(colors.GOOD, (0.8, colors.WARNING), (0.9, colors.CRITICAL))
TIME_LEFT = colors.thresholds(colors.CRITICAL, (3600, colors.WARNING), (6 * 3600, colors.GOOD))
TO_TRAINER = [links.from_series("heapwatch-trainer")]
TO_ALERTS = [links.from_series("heapwatch-alerts")]


def alarm(color: str) -> Json:
    """Green at zero, this colour from one on."""
    return colors.thresholds(colors.GOOD, (1, color))


def firing_alerts(width: int = 24, height: int = 7) -> Panel:
    """The alerts that fire now."""
    return table(
        "Firing alerts",
        [
            Column(
                "Severity", label="severity", width=90, cell={"type": "color-text"}, options=SEVERITY_COLORS
            ),
            Column("Alert", label="alertname"),
            Column("Kind", label="kind", width=90),
            Column("Resource", label="resource", width=110),
            Column("Component", label="component"),
            Column("instance", label="instance", options={"links": [links.from_row("heapwatch-trainer")]}),
            Column("job", label="job", width=80),
            Column("Since", q.ALERTS_SINCE, unit="dateTimeFromNow", width=140),
        ],
        "What fires now, and since when; the newest first. Good: empty.",
        empty=NOTHING_FIRES,
        sort_by="Since",
        width=width,
        height=height,
    )


SEVERITY_COLORS = {
    "mappings": [
        {
            "type": "value",
            "options": {
                severity: {"color": color, "index": index, "text": severity}
                for index, (severity, color) in enumerate(colors.SEVERITIES.items())
            },
        }
    ]
}


def freed_memory(width: int) -> Panel:
    """What each cleanup gave back."""
    return time_series(
        "Memory freed by cleanups",
        [Query(q.FREED, "{{instance}} {{action}}", interval="1m")],
        BYTES,
        "Memory that each cleanup gave back. Good: a bar at each cleanup mark. Bad: a mark without a bar.",
        empty=NO_CLEANUP,
        bars=True,
        links=TO_ALERTS,
        width=width,
    )


def cleanups(width: int) -> Panel:
    """How many cleanups ran."""
    return time_series(
        "Cleanups",
        [Query(q.CLEANUP_EVENTS, "{{instance}} {{action}}", interval="1m")],
        COUNT,
        "Cleanups in each interval. Good: few, and memory falls after each. Bad: again and again without "
        "effect.",
        empty=NO_CLEANUP,
        bars=True,
        decimals=0,
        links=TO_ALERTS,
        width=width,
    )
