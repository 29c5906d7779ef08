"""Panels, columns and thresholds that several dashboards have in common."""

from heapwatch.judge.limits import MEMORY_SHARES

from .. import colors, promql
from ..colors import VERDICTS
from ..empty import NOTHING_FIRES, NOTHING_GROWS
from ..navigation import link_to_page
from ..panel import AGO, BYTES, COUNT, NUMBER, SECONDS, SHARE, Json, Panel, Query
from ..panels import limit, lines, number
from ..promql import NAME, PROCESS, max_by, named, select
from ..queries import alerts, explanation, trainers
from ..tables import BACKGROUND, COLORED_TEXT, GAUGE, WRAPPED, Column, table

USED = colors.judged(
    colors.GOOD, (MEMORY_SHARES["warning"], colors.WARNING), (MEMORY_SHARES["critical"], colors.CRITICAL)
)
BELOW_WARNING = f"below {100 * MEMORY_SHARES['warning']:g} %"
TIME_LEFT = colors.judged(colors.CRITICAL, (3600, colors.WARNING), (6 * 3600, colors.PLAIN))
FORECAST_WORDS = {
    promql.TOO_EARLY: ("too early", colors.UNKNOWN),
    promql.NOT_SOON: ("not within a week", colors.UNKNOWN),
}
ALERT_PATH_WORDS = {
    0: ("works", colors.GOOD),
    1: ("no heartbeat", colors.CRITICAL),
    2: ("no receiver", colors.CRITICAL),
    3: ("not delivered", colors.CRITICAL),
    4: ("no Alertmanager", colors.CRITICAL),
}

_NAME = Column("Trainer", label="trainer_name", options={"links": [link_to_page()]})
ADDRESS = [Column("instance", label="instance", hidden=True), Column("job", label="job", hidden=True)]
# The trainer by its name; the labels that its links need are there, but not to be seen.
TRAINER = [_NAME, *ADDRESS]
# For tables of one row a trainer or machine; others name their first query.
_MACHINES = f"{select(NAME)} and on ({PROCESS}) {select('trainer_info', framework='machine')}"
_KINDS = (
    f'label_replace({_MACHINES}, "Kind", "machine", "", "")'
    f' or on ({PROCESS}) label_replace({select(NAME)}, "Kind", "trainer", "", "")'
)
NAMED = [
    Column("Trainer", label="trainer_name", options={"links": [link_to_page("${__data.fields.Kind}")]}),
    Column("Kind", label="Kind", width=75),
    Column("", max_by(f"{PROCESS}, trainer_name, Kind", _KINDS)),
    *ADDRESS,
]
WHAT = Column("What", label="what", width=190, cell=WRAPPED)
SITE = Column("Line", label="site", width=120)
REMEDY = Column("What to do", label="remedy", cell=WRAPPED)
SEVERITY = Column(
    "Severity",
    label="severity",
    width=90,
    cell=COLORED_TEXT,
    options={
        "mappings": colors.value_mappings({word: (word, color) for word, color in colors.SEVERITIES.items()})
    },
)
ALERT = [
    Column("Alert", label="alertname"),
    Column("Resource", label="resource", width=110),
    Column("Component", label="component"),
    *TRAINER,
    Column("kind", label="kind", hidden=True),
]


def time_left(expression: str) -> Column:
    """The time until memory reaches its limit, or why there is no forecast."""
    options = {"mappings": colors.value_mappings(FORECAST_WORDS), "thresholds": TIME_LEFT}
    return Column("Time left", expression, SECONDS, width=110, cell=COLORED_TEXT, options=options)


def share(title: str, expression: str, thresholds: Json, width: int = 140) -> Column:
    """A share of a whole as a gauge."""
    options = {"min": 0, "max": 1, "thresholds": thresholds}
    return Column(title, expression, SHARE, width=width, cell=GAUGE, options=options)


def verdict(expression: str, title: str = "Verdict", width: int = 110) -> Column:
    """A verdict as a word on its colour."""
    mappings = colors.value_mappings(VERDICTS)
    return Column(title, expression, width=width, cell=BACKGROUND, options={"mappings": mappings})


def what_grows(kind: Column, *more: Column) -> Panel:
    """What grows in one trainer or machine; `kind` is the column of the type."""
    return table(
        "What grows, where, and what to do",
        [
            verdict(named(explanation.STATE), width=90),
            WHAT,
            kind,
            SITE,
            REMEDY,
            Column("Since", explanation.SINCE, AGO, width=100),
            Column("Bytes/min", explanation.BYTES_PER_MINUTE, BYTES, width=95),
            time_left(explanation.of_rows(trainers.TIME_TO_LIMIT)),
            *more,
            Column("Share", explanation.SHARE, SHARE, width=70),
            *ADDRESS,
            Column("trainer_name", label="trainer_name", hidden=True),
        ],
        "What grows, by its path from a root of the program or by its resource: the line that fills it, "
        "since when, how fast, its share of the growth, and what to do. Leaks first; what neither leaks nor "
        "fills has the verdict on the whole. Good: nothing grows, or a buffer fills.",
        empty=NOTHING_GROWS,
        sort_by="Verdict",
        large=True,
        height=8,
    )


def growth_limit(resource: str, per: str = "minute") -> Query:
    """The growth limit, drawn if the growth comes near it."""
    series = f"job:trainer_resource:growth_per_{'minute' if per == 'minute' else 'cycle'}"
    return limit(promql.growth_limit(resource, per), select(series, resource=resource), "growth limit")


def growth_over_time(title: str, resource: str) -> Panel:
    """The growth of all components of what is counted, with the limit."""
    grows = promql.sum_by(f"{PROCESS}, component", promql.growth(resource))
    return lines(
        title,
        [Query(grows, "{{component}} {{trainer_name}}"), growth_limit(resource)],
        COUNT,
        "Slope over ten minutes. Good: around zero. Bad: above zero, or a dashed limit, for long.",
    )


def firing_alerts(height: int = 7, width: int = 0) -> Panel:
    """The alerts that fire now."""
    return table(
        "Firing alerts",
        [
            SEVERITY,
            Column("Since", named(alerts.ALERTS_SINCE), AGO, width=120),
            *ALERT,
            Column("What leaks", label="path", cell=WRAPPED),
            SITE,
        ],
        "What fires now, and since when; the newest first. Of a leak of memory also the path that leaks most "
        "and the line that fills it. Good: empty.",
        empty=NOTHING_FIRES,
        sort_by="Since",
        width=width,
        height=height,
    )


def alert_path(width: int = 0) -> Panel:
    """Whether alerts are delivered. Prometheus reports it, as Alertmanager cannot report its own failure."""
    return number(
        "Alert path",
        "max(job:stack:alert_path)",
        NUMBER,
        "Whether Prometheus reaches Alertmanager and the receiver, and the watchdog alert arrives there. "
        "Good: works. Bad: alerts do not arrive; `heapwatch status` says why.",
        words=ALERT_PATH_WORDS,
        thresholds=colors.judged(colors.GOOD, (1, colors.CRITICAL)),
        filled=True,
        width=width,
    )


def freed_memory() -> Panel:
    """The memory that each cleanup freed."""
    return lines(
        "Memory freed by cleanups",
        Query(alerts.FREED, "{{trainer_name}} {{action}}"),
        BYTES,
        "Memory that each cleanup gave back. Good: a bar at each cleanup. Bad: cleanups without a bar.",
        style="bars",
    )


def cleanups() -> Panel:
    """How many cleanups ran."""
    return lines(
        "Cleanups",
        Query(alerts.CLEANUP_EVENTS, "{{trainer_name}} {{action}}"),
        COUNT,
        "Cleanups in each interval. Good: few, and memory falls after each. Bad: again and again without "
        "effect.",
        style="bars",
    )
