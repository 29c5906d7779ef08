"""What fired, what was done about it, what it freed, and how long that took."""

from .. import colors, links
from .. import queries as q
from .. import stack_queries as sq
from ..dashboard import Dashboard, Row
from ..empty import (
    ALL_HELPED,
    NO_ACTION,
    NO_ALERT,
    NO_CLEANUP,
    NO_RECEIVER,
    NOTHING_FIRED,
    NOTHING_LEFT_ALONE,
)
from ..panel import BYTES, COUNT, SECONDS, SHARE, Query
from ..panels import bar_gauge, heatmap, stat, state_timeline, time_series
from ..tables import Column, table
from .shared import SEVERITY_COLORS, alarm, cleanups, firing_alerts, freed_memory

ALERT_STATES = {1: ("pending", colors.NOTICE), 2: ("firing", colors.CRITICAL)}

GLANCE = Row(
    "",
    [
        stat(
            "Firing",
            Query(q.ALERTS_FIRING_COUNT),
            COUNT,
            "Alerts that fire now for the chosen trainers. Good: 0.",
            thresholds=alarm(colors.CRITICAL),
            background=True,
            trend=False,
            width=3,
        ),
        stat(
            "Pending",
            Query(q.ALERTS_PENDING_COUNT),
            COUNT,
            "Alerts whose condition holds, not yet long enough. Good: 0.",
            thresholds=alarm(colors.NOTICE),
            background=True,
            trend=False,
            width=3,
        ),
        stat(
            "Cleanups in range",
            Query(q.CLEANUPS_IN_RANGE, instant=True),
            COUNT,
            "Cleanups that ran in the time range, by whoever asked.",
            width=3,
        ),
        stat(
            "Freed in range",
            Query(q.FREED_IN_RANGE, instant=True),
            BYTES,
            "Memory that these cleanups gave back. Bad: near zero although cleanups ran.",
            decimals=1,
            width=3,
        ),
        stat(
            "Actions that helped",
            Query(sq.HELPED_SHARE, instant=True),
            SHARE,
            "Share of the receiver's actions in the time range after which the alert's cause was gone. "
            "Good: 100 %.",
            empty=NO_ACTION,
            thresholds=colors.thresholds(colors.CRITICAL, (0.5, colors.WARNING), (0.9, colors.GOOD)),
            decimals=0,
        ),
        stat(
            "From alert to effect",
            Query(sq.ALERT_TO_EFFECT_P90, instant=True),
            SECONDS,
            "Nine of ten actions of the time range took at most this long from the alert to the verdict on "
            "its cleanup.",
            empty=NO_ACTION,
            decimals=1,
        ),
        stat(
            "Cleanups without effect",
            Query(sq.NO_EFFECT_COUNT),
            COUNT,
            "Trainers whose last cleanup did not help. Good: 0. Bad: cleaning is no cure: mend the leak or "
            "restart.",
            empty=NO_RECEIVER,
            thresholds=alarm(colors.CRITICAL),
            background=True,
            trend=False,
        ),
    ],
)

FIRED = Row(
    "What fired",
    [
        state_timeline(
            "Alerts over time",
            Query(q.ALERT_STATES, "{{alertname}} {{component}} {{instance}}", interval="30s"),
            ALERT_STATES,
            "Each alert from pending to firing to gone. Good: empty, or ended by a cleanup.",
            empty=NO_ALERT,
            height=9,
        ),
        firing_alerts(height=6),
        table(
            "Alerts in range",
            [
                Column(
                    "Severity",
                    label="severity",
                    width=90,
                    cell={"type": "color-text"},
                    options=SEVERITY_COLORS,
                ),
                Column("Alert", label="alertname"),
                Column("Kind", label="kind", width=90),
                Column("Resource", label="resource", width=110),
                Column("Component", label="component"),
                Column(
                    "instance", label="instance", options={"links": [links.from_row("heapwatch-trainer")]}
                ),
                Column("job", label="job", width=80),
                Column("Fired for", q.ALERTS_FIRED_FOR, unit=SECONDS, decimals=1, width=110),
            ],
            "Everything that fired in the time range, and for how long altogether.",
            empty=NOTHING_FIRED,
            sort_by="Fired for",
            height=7,
        ),
    ],
)

DONE = Row(
    "What was done",
    [
        cleanups(width=8),
        freed_memory(width=8),
        time_series(
            "Removed by cleanups",
            [Query(q.REMOVED, "{{resource}}", interval="1m")],
            COUNT,
            "Bodies, events, experiences and the like that cleanups removed.",
            empty=NO_CLEANUP,
            bars=True,
            width=8,
        ),
        time_series(
            "Memory around cleanups",
            [Query(q.RESIDENT, "{{instance}}")],
            BYTES,
            "Memory of each trainer, with cleanups as marks. Good: a drop at each mark that lasts. "
            "Bad: no drop, or back within minutes.",
        ),
        time_series(
            "Cleanup duration",
            [Query(q.CLEANUP_DURATION, "{{instance}} {{action}}", interval="1m")],
            SECONDS,
            "How long training stood still for a cleanup. Good: below a second.",
            empty=NO_CLEANUP,
            bars=True,
        ),
    ],
)

RECEIVER = Row(
    "What the receiver decided, for all trainers",
    [
        time_series(
            "Actions by result",
            [Query(sq.ACTIONS, "{{action}} {{result}}", interval="1m")],
            COUNT,
            "What the receiver did and how it ended. Good: helped. Bad: no_effect, failed.",
            empty=NO_ACTION,
            bars=True,
            width=8,
        ),
        time_series(
            "Alerts not acted on",
            [Query(sq.SUPPRESSED, "{{reason}}", interval="1m")],
            COUNT,
            "Alerts that no action followed, by reason: resolved, duplicate, cooldown and so on. All are "
            "in the audit.",
            empty=NOTHING_LEFT_ALONE,
            bars=True,
            width=8,
        ),
        bar_gauge(
            "Actions in range",
            Query(sq.ACTIONS_IN_RANGE, "{{action}} {{result}}", instant=True),
            COUNT,
            "Actions of the time range by result.",
            empty=NO_ACTION,
        ),
        heatmap(
            "From alert to effect over time",
            Query(sq.ALERT_TO_EFFECT, "{{le}}", format="heatmap", interval="1m"),
            SECONDS,
            "Seconds from an alert's receipt to the verdict on its cleanup. Good: dark low down.",
            empty=NO_ACTION,
        ),
        table(
            "Last cleanup without effect",
            [
                Column("Trainer", label="trainer_instance"),
                Column("Job", label="trainer_job"),
                Column("Without effect", f"{sq.NO_EFFECT} > 0", unit=COUNT),
            ],
            "Trainers whose last cleanup did not help and whose alert goes on. Good: empty.",
            empty=ALL_HELPED,
            width=12,
        ),
    ],
)

DASHBOARD = Dashboard(
    uid="heapwatch-alerts",
    description=(
        "What fired, what was done about it, what that freed, how long it took, and whether it helped."
    ),
    rows=[GLANCE, FIRED, DONE, RECEIVER],
)
