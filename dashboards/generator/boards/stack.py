"""The watcher watched: scrapes, rules, notifications, the receiver, and what the exporters cost."""

from .. import colors
from .. import stack_queries as sq
from ..dashboard import Dashboard, Row
from ..empty import NO_PROMETHEUS, NO_RECEIVER, NO_SAFE_POINT, NO_SAMPLERS, NO_SERVICE, NO_TARGET
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import stat, state_timeline, time_series
from .shared import alarm

UP = {0: ("down", colors.CRITICAL), 1: ("up", colors.GOOD)}

GLANCE = Row(
    "",
    [
        stat(
            "Targets",
            Query(sq.TARGETS_COUNT),
            COUNT,
            "Everything that Prometheus scrapes: trainers and the stack's own services.",
            empty=NO_TARGET,
            trend=False,
        ),
        stat(
            "Targets down",
            Query(sq.DOWN_COUNT),
            COUNT,
            "Targets whose last scrape failed. Good: 0.",
            empty=NO_TARGET,
            thresholds=alarm(colors.CRITICAL),
            background=True,
            trend=False,
        ),
        stat(
            "Rule failures in range",
            Query(f"round({sq.RULE_FAILURES_IN_RANGE})", instant=True),
            COUNT,
            "Rules that could not be evaluated in the time range. Good: 0: otherwise alerts may be missing.",
            empty=NO_PROMETHEUS,
            thresholds=alarm(colors.CRITICAL),
            background=True,
        ),
        stat(
            "Collector errors in range",
            Query(f"round({sq.COLLECT_ERRORS_IN_RANGE})", instant=True),
            COUNT,
            "Reads that failed in the trainers' exporters. Good: 0: a collector that fails loses only its "
            "own series.",
            thresholds=alarm(colors.WARNING),
            background=True,
        ),
        stat(
            "Receiver queue",
            Query(f"max({sq.QUEUE})"),
            COUNT,
            "Alerts and actions that wait. Good: 0, or back to 0 within a minute.",
            empty=NO_RECEIVER,
            thresholds=alarm(colors.WARNING),
            trend=False,
        ),
        stat(
            "Since the last heartbeat",
            Query(sq.SINCE_WATCHDOG),
            SECONDS,
            "Since the watchdog alert last came through Prometheus, Alertmanager and receiver. Good: below "
            "five minutes.",
            empty=NO_RECEIVER,
            thresholds=colors.thresholds(colors.GOOD, (300, colors.WARNING), (900, colors.CRITICAL)),
            trend=False,
            decimals=0,
        ),
    ],
)

SCRAPES = Row(
    "Scrapes",
    [
        state_timeline(
            "Targets over time",
            Query(sq.UP, "{{job}} {{instance}} {{service}}"),
            UP,
            "Whether each target answered. Good: all up.",
            empty=NO_TARGET,
            height=9,
        ),
        time_series(
            "Scrape duration",
            [Query(sq.SCRAPE_SECONDS, "{{job}} {{instance}}")],
            SECONDS,
            "How long a scrape took. Good: milliseconds. Bad: seconds: the trainer is busy or the "
            "exposition too large.",
            empty=NO_TARGET,
            width=8,
        ),
        time_series(
            "Samples per scrape",
            [Query(sq.SCRAPE_SAMPLES, "{{job}} {{instance}}")],
            COUNT,
            "Series that each target exposes. Good: constant, a few hundred. Bad: rising: a label without "
            "bound.",
            empty=NO_TARGET,
            width=8,
        ),
        time_series(
            "Series and samples in Prometheus",
            [Query(sq.SERIES, "series"), Query(sq.SAMPLES, "samples per second")],
            COUNT,
            "Size of the data. Good: flat while the number of trainers is.",
            empty=NO_PROMETHEUS,
            width=8,
        ),
    ],
)

RULES = Row(
    "Rules and notifications",
    [
        time_series(
            "Rule evaluation time",
            [Query(sq.RULE_SECONDS, "{{rule_group}}")],
            SECONDS,
            "How long each group of rules takes. Good: far below its interval of 30 s.",
            empty=NO_PROMETHEUS,
            width=8,
        ),
        time_series(
            "Rule failures and missed evaluations",
            [
                Query(sq.RULE_FAILURES, "{{rule_group}} failed", interval="1m"),
                Query(sq.RULES_MISSED, "{{rule_group}} missed", interval="1m"),
            ],
            COUNT,
            "Good: zero. Bad: anything else: verdicts and alerts are late or missing.",
            empty=NO_PROMETHEUS,
            bars=True,
            width=8,
        ),
        time_series(
            "Notifications",
            [
                Query(sq.NOTIFICATIONS_SENT, "sent by Prometheus"),
                Query(sq.NOTIFICATIONS_DROPPED, "dropped by Prometheus"),
                Query(sq.NOTIFICATIONS_FAILED, "failed by Prometheus"),
                Query(sq.ALERTMANAGER_SENT, "sent by Alertmanager to {{integration}}"),
                Query(sq.ALERTMANAGER_FAILED, "failed by Alertmanager to {{integration}}"),
            ],
            "cps",
            "Alerts on their way. Good: nothing dropped, nothing failed.",
            empty=NO_PROMETHEUS,
            width=8,
        ),
    ],
)

RECEIVER = Row(
    "Receiver and services",
    [
        time_series(
            "Receiver queue over time",
            [Query(sq.QUEUE, "{{instance}}")],
            COUNT,
            "Alerts and actions that wait. Good: back to zero within a minute.",
            empty=NO_RECEIVER,
            steps=True,
            width=8,
        ),
        time_series(
            "Memory of the services",
            [Query(sq.RESIDENT, "{{service}} {{instance}}")],
            BYTES,
            "The watcher must not be the leak. Good: flat.",
            empty=NO_SERVICE,
            width=8,
        ),
        time_series(
            "CPU cores of the services",
            [Query(sq.CPU, "{{service}} {{instance}}")],
            "none",
            "Good: a small part of one core.",
            empty=NO_SERVICE,
            decimals=2,
            width=8,
        ),
    ],
)

EXPORTERS = Row(
    "What watching costs the trainers",
    [
        time_series(
            "Collection time by collector",
            [Query(sq.COLLECT_SECONDS, "{{collector}}")],
            SECONDS,
            "Seconds each collector took at the last scrape, the slowest trainer. Good: milliseconds.",
            width=8,
        ),
        time_series(
            "Share of training time spent on samples",
            [Query(sq.SAMPLE_SHARE, "{{instance}}"), Query(sq.SAMPLE_BUDGET, "capacity limit")],
            SHARE,
            "What samplers take of the trainers' own thread, against their budget. Good: below the dashed "
            "line.",
            empty=NO_SAMPLERS,
            width=8,
        ),
        time_series(
            "Sample age by collector",
            [Query(sq.SAMPLE_AGE, "{{instance}} {{collector}}")],
            SECONDS,
            "How old the sample is that a scrape gets. Good: seconds. Bad: rising: no safe point is reached.",
            empty=NO_SAMPLERS,
            width=8,
        ),
        time_series(
            "Time since the last safe point",
            [Query(sq.SAFE_POINT_AGE, "{{instance}}")],
            SECONDS,
            "How long ago the training loop last let the watcher work. Good: below a minute.",
            empty=NO_SAFE_POINT,
        ),
        time_series(
            "Collector errors",
            [Query(sq.COLLECT_ERRORS, "{{collector}} errors", interval="1m")],
            COUNT,
            "Reads that failed. Good: none. The series of that collector are missing meanwhile.",
            bars=True,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-stack",
    description="The watcher watched: targets, rules, notifications, receiver, and what the exporters cost.",
    rows=[GLANCE, SCRAPES, RULES, RECEIVER, EXPORTERS],
    variables_from="up",
    annotations=(),
)
