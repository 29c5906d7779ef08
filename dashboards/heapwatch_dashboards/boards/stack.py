"""The stack itself: scrapes, rules, notifications, the receiver, and the cost of the exporters."""

from .. import colors
from ..dashboard import Dashboard, Row, two_a_line
from ..panel import BYTES, NUMBER, PER_SECOND, SECONDS, SHARE, Query
from ..panels import alarm, limit, lines, number, states
from ..promql import PROCESS, counted, max_by, min_by, rate, select, sum_by, total
from .shared import alert_path

# Targets.
DOWN_COUNT = f"count({select('up')} == 0) or 0 * count({select('up')})"
RESIDENT = max_by(f"{PROCESS}, service", select("process_resident_memory_bytes", 'service!=""'))

# Alertmanager.
# It counts for every integration that there is, most of which are not configured.
_NOTIFIED = f"increase({select('alertmanager_notifications_total')}[$__range])"
_USED = f"and on (integration) {sum_by('integration', _NOTIFIED)} > 0"
ALERTMANAGER_SENT = f"{sum_by('integration', rate(select('alertmanager_notifications_total')))} {_USED}"
ALERTMANAGER_FAILED = (
    f"{sum_by('integration', rate(select('alertmanager_notifications_failed_total')))} {_USED}"
)

# Receiver.
QUEUE = max_by(PROCESS, select("heapwatch_receiver_queue_length"))

# Exporters.
_COLLECTOR = f"{PROCESS}, collector"
SAMPLE_SHARE = f"({sum_by(PROCESS, rate(select('trainer_exporter_sample_seconds_total')))})"
# A step is a safe point, too, whichever thread made it.
_AGE = select("trainer_exporter_safe_point_age_seconds")
_SINCE_STEP = f"clamp_min(time() - {select('trainer_last_progress_timestamp_seconds')}, 0)"
SAFE_POINT_AGE = min_by(
    PROCESS, f'{_AGE} or label_replace({_SINCE_STEP}, "of", "step", "", "") and on (job, instance) {_AGE}'
)
SAMPLE_AGE = max_by(_COLLECTOR, select("trainer_exporter_sample_age_seconds"))

UP = {0: ("down", colors.CRITICAL), 1: ("up", colors.GOOD)}

GLANCE = [
    number("Targets", f"count({select('up')})", NUMBER, "All that is scraped: trainers and the stack."),
    alarm("Targets down", DOWN_COUNT, colors.CRITICAL, "Targets whose last scrape failed. Good: 0."),
    alarm(
        "Rule failures in range",
        total(counted(select("prometheus_rule_evaluation_failures_total"))),
        colors.CRITICAL,
        "Rules that could not be evaluated in the time range. Good: 0: otherwise alerts may be missing.",
    ),
    alarm(
        "Failed reads",
        total(counted(select("trainer_exporter_collect_errors_total"))),
        colors.WARNING,
        "Reads that failed in the trainers' exporters in the time range. Good: 0. "
        "A collector that fails loses only its own series.",
    ),
    alarm("Receiver queue", f"max({QUEUE})", colors.WARNING, "Alerts and actions that wait. Good: 0."),
    number(
        "Last heartbeat",
        f"time() - max({select('heapwatch_receiver_last_watchdog_timestamp_seconds')})",
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
        Query(max_by(f"{PROCESS}, service", select("up")), "{{service}} {{job}} {{instance}}"),
        UP,
        "Whether each target answered. Good: all up.",
        height=9,
        width=14,
    ),
    lines(
        "Notifications",
        [
            Query(total(rate(select("prometheus_notifications_sent_total"))), "sent by Prometheus"),
            Query(total(rate(select("prometheus_notifications_dropped_total"))), "dropped by Prometheus"),
            Query(total(rate(select("prometheus_notifications_errors_total"))), "failed by Prometheus"),
            Query(ALERTMANAGER_SENT, "sent by Alertmanager to {{integration}}"),
            Query(ALERTMANAGER_FAILED, "failed by Alertmanager to {{integration}}"),
        ],
        PER_SECOND,
        "Alerts on their way. Good: nothing dropped, nothing failed.",
    ),
]

COST = two_a_line(
    lines(
        "Share of training time spent on samples",
        [
            Query(SAMPLE_SHARE, "{{instance}}"),
            limit(f"min({select('trainer_exporter_budget_ratio')})", SAMPLE_SHARE, "budget limit"),
        ],
        SHARE,
        "What samplers take of the trainers' own thread, against their budget. Good: below the dashed line.",
    ),
    lines(
        "Time since the last safe point",
        Query(SAFE_POINT_AGE, "{{instance}}"),
        SECONDS,
        "How long ago the training loop last let the watcher work. Good: below a minute.",
    ),
    lines(
        "Sample age by collector",
        Query(SAMPLE_AGE, "{{collector}} {{instance}}"),
        SECONDS,
        "How old the sample is that a scrape gets. Good: seconds. Bad: rising: no safe point is reached.",
    ),
    lines(
        "Memory of the services",
        Query(RESIDENT, "{{service}} {{instance}}"),
        BYTES,
        "The watcher must not be the leak. Good: flat.",
    ),
)

DASHBOARD = Dashboard(
    uid="heapwatch-stack",
    description="Does the watcher itself work, and what does it cost the trainers?",
    rows=[Row("", [GLANCE, TARGETS]), Row("What watching costs", COST)],
)
