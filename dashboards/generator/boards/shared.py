"""Panels, columns and looks that several dashboards have in common."""

from .. import colors, links
from ..empty import NOTHING_FIRES
from ..limits import limit, limit_of_each
from ..panel import AGO, BYTES, COUNT, Panel, Query
from ..panels import lines
from ..promql import select
from ..queries import alerts, recorded, trainers
from ..tables import COLORED_TEXT, Column, table

USED = colors.thresholds(colors.GOOD, (0.8, colors.WARNING), (0.9, colors.CRITICAL))
TIME_LEFT = colors.thresholds(colors.CRITICAL, (3600, colors.WARNING), (6 * 3600, colors.PLAIN))
FORECAST_WORDS = {
    recorded.TOO_EARLY: ("too early", colors.UNKNOWN),
    recorded.NOT_SOON: ("not within 3 days", colors.UNKNOWN),
}
RING = colors.thresholds(colors.GOOD, (1.001, colors.CRITICAL))
TO_TRAINER = [links.from_series("heapwatch-trainer")]
TO_ALERTS = [links.from_series("heapwatch-alerts")]

SEVERITY = Column(
    "Severity",
    label="severity",
    width=90,
    cell=COLORED_TEXT,
    options={"mappings": colors.word_mappings(colors.SEVERITIES)},
)
INSTANCE = Column("instance", label="instance", options={"links": [links.from_row("heapwatch-trainer")]})
JOB = Column("job", label="job", width=80)
ALERT = [
    SEVERITY,
    Column("Alert", label="alertname"),
    Column("Kind", label="kind", width=90),
    Column("Resource", label="resource", width=110),
    Column("Component", label="component"),
    INSTANCE,
    JOB,
]


def growth_limit(resource: str, per: str = "minute") -> tuple[Query, Query]:
    """The growth limit, drawn where the growth comes near it."""
    series = {"minute": "job:trainer_resource:growth_per_minute"}.get(
        per, "job:trainer_resource:growth_per_cycle"
    )
    return limit(recorded.growth_limit(resource, per), select(series, resource=resource), "growth limit")


def memory_limit() -> tuple[Query, Query]:
    """What the container or the host gives, drawn where memory comes near it."""
    return limit_of_each(
        trainers.MEMORY_LIMIT, select("job:trainer_memory:resident_bytes"), "{{instance}} memory limit"
    )


def firing_alerts(height: int = 7, width: int = 0) -> Panel:
    """The alerts that fire now."""
    return table(
        "Firing alerts",
        [
            *ALERT,
            Column("Since", alerts.ALERTS_SINCE, AGO, width=140),
        ],
        "What fires now, and since when; the newest first. Good: empty.",
        empty=NOTHING_FIRES,
        sort_by="Since",
        width=width,
        height=height,
    )


def freed_memory() -> Panel:
    """What each cleanup gave back."""
    return lines(
        "Memory freed by cleanups",
        Query(alerts.FREED, "{{instance}} {{action}}", interval="1m"),
        BYTES,
        "Memory that each cleanup gave back. Good: a bar at each cleanup mark. Bad: a mark without a bar.",
        bars=True,
        links=TO_ALERTS,
    )


def cleanups(width: int = 0) -> Panel:
    """How many cleanups ran."""
    return lines(
        "Cleanups",
        Query(alerts.CLEANUP_EVENTS, "{{instance}} {{action}}", interval="1m"),
        COUNT,
        "Cleanups in each interval. Good: few, and memory falls after each. Bad: again and again without "
        "effect.",
        bars=True,
        links=TO_ALERTS,
        width=width,
    )
