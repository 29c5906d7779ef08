"""The stack itself: scrapes, rules, notifications, the receiver, and the cost of the exporters."""

from .. import colors
from ..dashboard import Dashboard, Row
from ..panel import BYTES, COUNT, NUMBER, PER_SECOND, SECONDS, SHARE, Query
from ..panels import alarm, limit, lines, number, states
from ..queries import stack
from .shared import alert_path

UP = {0: ("down", colors.CRITICAL), 1: ("up", colors.GOOD)}

GLANCE = [
    number(
        "Targets",
        stack.TARGETS_COUNT,
        NUMBER,
        "Everything that Prometheus scrapes: trainers and the stack's own services.",
    ),
    alarm("Targets down", stack.DOWN_COUNT, colors.CRITICAL, "Targets whose last scrape failed. Good: 0."),
    alarm(
        "Rule failures in range",
        stack.RULE_FAILURES_IN_RANGE,
        colors.CRITICAL,
        "Rules that could not be evaluated in the time range. Good: 0: otherwise alerts may be missing.",
    ),
    alarm(
        "Failed reads",
        stack.COLLECT_ERRORS_IN_RANGE,
        colors.WARNING,
        "Reads that failed in the trainers' exporters in the time range. Good: 0. "
        "A collector that fails loses only its own series.",
    ),
    alarm(
        "Receiver queue",
        stack.LONGEST_QUEUE,
        colors.WARNING,
        "Alerts and actions that wait. Good: 0, or back to 0 within a minute.",
    ),
    number(
        "Last heartbeat",
        stack.SINCE_WATCHDOG,
        SECONDS,
        "Time since the watchdog alert last came through Prometheus, Alertmanager and receiver. "
        "Good: below five minutes.",
        thresholds=colors.judged(colors.GOOD, (300, colors.WARNING), (900, colors.CRITICAL)),
    ),
    alert_path(),
]

TARGETS = [
    states(
        "Targets over time",
        Query(stack.UP, "{{service}} {{job}} {{instance}}"),
        UP,
        "Whether each target answered. Good: all up.",
        height=9,
        width=14,
    ),
    lines(
        "Notifications",
        [
            Query(stack.NOTIFICATIONS_SENT, "sent by Prometheus"),
            Query(stack.NOTIFICATIONS_DROPPED, "dropped by Prometheus"),
            Query(stack.NOTIFICATIONS_FAILED, "failed by Prometheus"),
            Query(stack.ALERTMANAGER_SENT, "sent by Alertmanager to {{integration}}"),
            Query(stack.ALERTMANAGER_FAILED, "failed by Alertmanager to {{integration}}"),
        ],
        PER_SECOND,
        "Alerts on their way. Good: nothing dropped, nothing failed.",
    ),
]

RULES = [
    lines(
        "Rule evaluation time",
        Query(stack.RULE_SECONDS, "{{group}}"),
        SECONDS,
        "How long each group of rules takes. Good: far below its interval, half a minute.",
    ),
    lines(
        "Rule failures and missed evaluations",
        [
            Query(stack.RULE_FAILURES, "failed {{group}}", interval="1m"),
            Query(stack.RULES_MISSED, "missed {{group}}", interval="1m"),
        ],
        COUNT,
        "Good: zero. Bad: anything else: verdicts and alerts are late or missing.",
        bars=True,
    ),
]

SERVICES = [
    [
        lines(
            "Scrape duration",
            Query(stack.SCRAPE_SECONDS, "{{job}} {{instance}}"),
            SECONDS,
            "How long a scrape took. Good: milliseconds. Bad: seconds: the trainer is busy or the exposition "
            "too large.",
        ),
        lines(
            "Samples per scrape",
            Query(stack.SCRAPE_SAMPLES, "{{job}} {{instance}}"),
            COUNT,
            "Series that each target exposes. Good: constant, a few hundred. Bad: rising: a label without "
            "bound.",
        ),
    ],
    [
        lines(
            "Memory of the services",
            Query(stack.RESIDENT, "{{service}} {{instance}}"),
            BYTES,
            "The watcher must not be the leak. Good: flat.",
        ),
        lines(
            "CPU cores of the services",
            Query(stack.CPU, "{{service}} {{instance}}"),
            NUMBER,
            "Good: a small part of one core.",
        ),
    ],
    [
        lines(
            "Series and samples in Prometheus",
            [Query(stack.SERIES, "series"), Query(stack.SAMPLES, "samples per second")],
            COUNT,
            "Size of the data. Good: flat while the number of trainers is.",
        ),
        lines(
            "Receiver queue over time",
            Query(stack.QUEUE, "{{instance}}"),
            COUNT,
            "Alerts and actions that wait. Good: back to zero within a minute.",
            steps=True,
        ),
    ],
]

EXPORTERS = [
    [
        lines(
            "Share of training time spent on samples",
            [
                Query(stack.SAMPLE_SHARE, "{{instance}}"),
                *limit(stack.SAMPLE_BUDGET, stack.SAMPLE_SHARE, "budget limit"),
            ],
            SHARE,
            "What samplers take of the trainers' own thread, against their budget. Good: below the dashed "
            "line.",
        ),
        lines(
            "Time since the last safe point",
            Query(stack.SAFE_POINT_AGE, "{{instance}}"),
            SECONDS,
            "How long ago the training loop last let the watcher work. Good: below a minute.",
        ),
    ],
    [
        lines(
            "Sample age by collector",
            Query(stack.SAMPLE_AGE, "{{collector}} {{instance}}"),
            SECONDS,
            "How old the sample is that a scrape gets. Good: seconds. Bad: rising: no safe point is reached.",
        ),
        lines(
            "Collection time by collector",
            Query(stack.COLLECT_SECONDS, "{{collector}}"),
            SECONDS,
            "Seconds each collector took at the last scrape, the slowest trainer. Good: milliseconds.",
        ),
    ],
    [
        lines(
            "Collector errors",
            Query(stack.COLLECT_ERRORS, "errors {{collector}}", interval="1m"),
            COUNT,
            "Reads that failed. Good: none. The series of that collector are missing meanwhile.",
            bars=True,
        )
    ],
]

DASHBOARD = Dashboard(
    uid="heapwatch-stack",
    description="Does the watcher itself work, and what does it cost the trainers?",
    rows=[
        Row("", [GLANCE, TARGETS]),
        Row("Rules", [RULES]),
        Row("Scrapes and services", SERVICES),
        Row("What watching costs the trainers", EXPORTERS),
    ],
    about_trainers=False,
)
