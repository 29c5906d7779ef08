"""What fired, what was done about it, what it freed, and how long that took."""

from .. import colors
from ..dashboard import Dashboard, Row, two_a_line
from ..empty import NOTHING_FIRED
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import alarm, lines, number, states
from ..promql import counted, increment, or_zero, sum_by, total
from ..queries import alerts, trainers
from ..tables import Column, table
from .shared import ALERT, SEVERITY, cleanups, firing_alerts, freed_memory

# What was decided and done, whichever trainers are chosen.
_HELPED = total(counted('heapwatch_receiver_actions_total{result="helped"}'))
_ANSWERED = total(counted('heapwatch_receiver_actions_total{result=~"helped|no_effect|failed|unverified"}'))
_EFFECT_BUCKETS = sum_by("le", counted("heapwatch_receiver_alert_to_effect_seconds_bucket"))
_OF_CHOSEN = 'trainer_job=~"$job", trainer_instance=~"$instance"'
NO_EFFECT = f"heapwatch_receiver_cleanup_no_effect{{{_OF_CHOSEN}}}"
# Without an action the quantile is not a number, which no comparison lets through.
ALERT_TO_EFFECT_P90 = f"histogram_quantile(0.9, {_EFFECT_BUCKETS}) >= 0"
ACTIONS = f"{sum_by('action, result', increment('heapwatch_receiver_actions_total'))} > 0"
SUPPRESSED = f"{sum_by('reason', increment('heapwatch_receiver_alerts_suppressed_total'))} > 0"

ALERT_STATES = {1: ("pending", colors.NOTICE), 2: ("firing", colors.CRITICAL)}

GLANCE = [
    alarm("Firing", alerts.ALERTS_FIRING_COUNT, colors.CRITICAL, "Alerts that fire now. Good: 0.", width=3),
    alarm("Pending", alerts.ALERTS_PENDING_COUNT, colors.NOTICE, "Alerts that may fire soon.", width=3),
    number("Cleanups in range", alerts.CLEANUPS_IN_RANGE, COUNT, "Cleanups in the time range.", width=3),
    number("Freed in range", alerts.FREED_IN_RANGE, BYTES, "What they gave back. Bad: near zero.", width=3),
    number(
        "Actions that helped, all trainers",
        f"{_HELPED} / ({_ANSWERED} > 0)",
        SHARE,
        "Share of the receiver's actions in the time range after which the alert's cause was gone. Good: "
        "100 %.",
        thresholds=colors.judged(colors.CRITICAL, (0.5, colors.WARNING), (0.9, colors.GOOD)),
    ),
    number(
        "From alert to effect, all trainers",
        ALERT_TO_EFFECT_P90,
        SECONDS,
        "Nine of ten actions of the time range took at most this long from the alert to the check of its "
        "cleanup.",
    ),
    alarm(
        "Cleanups without effect",
        or_zero(f"sum({NO_EFFECT})", "max(heapwatch_receiver_queue_length)"),
        colors.CRITICAL,
        "Trainers whose last cleanup did not help. Good: 0. Bad: any; fix the leak or restart the trainer.",
    ),
]

OVER_TIME = states(
    "Alerts over time",
    Query(alerts.ALERT_STATES, "{{alertname}} {{component}} {{trainer_name}}", interval="30s"),
    ALERT_STATES,
    "Each alert from pending to firing to gone. Good: empty, or ended by a cleanup.",
    height=10,
)

FIRED = table(
    "Alerts in range",
    [SEVERITY, Column("Fired for", alerts.ALERTS_FIRED_FOR, SECONDS, width=110), *ALERT],
    "Everything that fired in the time range, and for how long altogether.",
    empty=NOTHING_FIRED,
    sort_by="Fired for",
    height=7,
)

DONE = two_a_line(
    cleanups(),
    freed_memory(),
    lines(
        "Memory around cleanups",
        Query(trainers.RESIDENT, "{{trainer_name}}"),
        BYTES,
        "Memory of each trainer, with cleanups as marks. Good: a drop at each mark that lasts. "
        "Bad: no drop, or back within minutes.",
        marked=True,
    ),
    lines(
        "Removed by cleanups",
        Query(alerts.REMOVED, "{{resource}}"),
        COUNT,
        "Bodies, events, experiences and the like that cleanups removed.",
        style="bars",
    ),
)

RECEIVER = two_a_line(
    lines(
        "Actions by result",
        Query(ACTIONS, "{{action}} {{result}}"),
        COUNT,
        "What the receiver did and how it ended. Good: helped. Bad: no_effect, failed.",
        style="bars",
    ),
    lines(
        "Alerts not acted on",
        Query(SUPPRESSED, "{{reason}}"),
        COUNT,
        "Alerts that no action followed, by reason: resolved, duplicate, cooldown and so on. All are in "
        "the audit.",
        style="bars",
    ),
)

DASHBOARD = Dashboard(
    uid="heapwatch-alerts",
    description="What fires, what was done about it, and did that help?",
    rows=[
        Row("", [GLANCE, [firing_alerts()], [OVER_TIME]]),
        Row("What fired", [[FIRED]]),
        Row("What was done", DONE),
        Row("What the receiver decided, for all trainers", RECEIVER),
    ],
)
