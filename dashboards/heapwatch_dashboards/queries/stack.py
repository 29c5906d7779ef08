"""Every PromQL expression about the stack itself and what the exporters cost.

One receiver serves all trainers and has its own job. The dashboards of trainers use all its series
(`receiver`). On the stack's dashboard `$job` and `$instance` select from everything that is scraped.
"""

from ..promql import (
    TRAINER,
    counted,
    events_or_zero,
    in_range,
    increment,
    max_by,
    min_by,
    or_zero,
    rate,
    select,
    sum_by,
    total,
)


def receiver(metric: str) -> str:
    """A series of the receiver, for any selection of trainers."""
    return f"heapwatch_receiver_{metric}"


# What was decided and done, whichever trainers are chosen.
ACTIONS = f"{sum_by('action, result', increment(receiver('actions_total')))} > 0"
ACTIONS_IN_RANGE = f"{sum_by('action, result', counted(receiver('actions_total')))} > 0"
_HELPED = total(counted(receiver('actions_total{result="helped"}')))
_ANSWERED = total(counted(receiver('actions_total{result=~"helped|no_effect|failed|unverified"}')))
HELPED_SHARE = f"{_HELPED} / ({_ANSWERED} > 0)"
SUPPRESSED = f"{sum_by('reason', increment(receiver('alerts_suppressed_total')))} > 0"
_EFFECTS = sum_by("le", increment(receiver("alert_to_effect_seconds_bucket")))
_ANY_EFFECT = f"sum({increment(receiver('alert_to_effect_seconds_count'))}) > 0"
ALERT_TO_EFFECT = f"{_EFFECTS} and on () ({_ANY_EFFECT})"
_EFFECT_BUCKETS = sum_by("le", counted(receiver("alert_to_effect_seconds_bucket")))
# Without an action the quantile is not a number, which no comparison lets through.
ALERT_TO_EFFECT_P90 = f"histogram_quantile(0.9, {_EFFECT_BUCKETS}) >= 0"
_OF_CHOSEN = 'trainer_job=~"$job", trainer_instance=~"$instance"'
_TRAINERS_JOB = (
    f'label_replace({receiver("cleanup_no_effect")}{{{_OF_CHOSEN}}}, "job", "$1", "trainer_job", "(.*)")'
)
_OF_TRAINER = f'label_replace({_TRAINERS_JOB}, "instance", "$1", "trainer_instance", "(.*)")'
NO_EFFECT = max_by(TRAINER, _OF_TRAINER)
NO_EFFECT_COUNT = or_zero(f"sum({NO_EFFECT})", f"max({receiver('queue_length')})")

# Targets.
UP = max_by(f"{TRAINER}, service", select("up"))
DOWN_COUNT = f"count({select('up')} == 0) or 0 * count({select('up')})"
TARGETS_COUNT = f"count({select('up')})"
SCRAPE_SECONDS = max_by(TRAINER, select("scrape_duration_seconds"))
SCRAPE_SAMPLES = max_by(TRAINER, select("scrape_samples_scraped"))
RESIDENT = max_by(f"{TRAINER}, service", select("process_resident_memory_bytes", 'service!=""'))
CPU = sum_by(f"{TRAINER}, service", rate(select("process_cpu_seconds_total", 'service!=""')))

# Prometheus. A rule group is called FILE;NAME there.
_GROUP = "rule_group"


def _by_group(expression: str) -> str:
    return f'label_replace({expression}, "group", "$1", "rule_group", ".*;(.*)")'


RULE_SECONDS = _by_group(max_by(_GROUP, select("prometheus_rule_group_last_duration_seconds")))
RULE_FAILURES = _by_group(events_or_zero(_GROUP, select("prometheus_rule_evaluation_failures_total")))
RULES_MISSED = _by_group(events_or_zero(_GROUP, select("prometheus_rule_group_iterations_missed_total")))
RULE_FAILURES_IN_RANGE = total(counted(select("prometheus_rule_evaluation_failures_total")))
SERIES = max_by(TRAINER, select("prometheus_tsdb_head_series"))
SAMPLES = sum_by(TRAINER, rate(select("prometheus_tsdb_head_samples_appended_total")))
NOTIFICATIONS_SENT = total(rate(select("prometheus_notifications_sent_total")))
NOTIFICATIONS_DROPPED = total(rate(select("prometheus_notifications_dropped_total")))
NOTIFICATIONS_FAILED = total(rate(select("prometheus_notifications_errors_total")))

# Alertmanager.
# It counts for every integration that there is, most of which are not configured.
_NOTIFIED = in_range("increase", select("alertmanager_notifications_total"))
_USED = f"and on (integration) {sum_by('integration', _NOTIFIED)} > 0"
ALERTMANAGER_SENT = f"{sum_by('integration', rate(select('alertmanager_notifications_total')))} {_USED}"
ALERTMANAGER_FAILED = (
    f"{sum_by('integration', rate(select('alertmanager_notifications_failed_total')))} {_USED}"
)

# Receiver.
QUEUE = max_by(TRAINER, select(receiver("queue_length")))
LONGEST_QUEUE = f"max({QUEUE})"
SINCE_WATCHDOG = f"time() - max({select(receiver('last_watchdog_timestamp_seconds'))})"

# What is wrong on the way of an alert, the worst of it.
ALERT_PATH = "max(job:stack:alert_path)"

# Exporters.
_COLLECTOR = f"{TRAINER}, collector"
COLLECT_SECONDS = max_by("collector", select("trainer_exporter_collect_seconds"))
COLLECT_ERRORS = events_or_zero("collector", select("trainer_exporter_collect_errors_total"))
COLLECT_ERRORS_IN_RANGE = total(counted(select("trainer_exporter_collect_errors_total")))
SAMPLE_AGE = max_by(_COLLECTOR, select("trainer_exporter_sample_age_seconds"))
SAMPLE_SHARE = f"({sum_by(TRAINER, rate(select('trainer_exporter_sample_seconds_total')))})"
SAMPLE_BUDGET = f"min({select('trainer_exporter_budget_ratio')})"
# A step is a safe point, too, whichever thread made it.
_AGE = select("trainer_exporter_safe_point_age_seconds")
_SINCE_STEP = f"clamp_min(time() - {select('trainer_last_progress_timestamp_seconds')}, 0)"
SAFE_POINT_AGE = min_by(
    TRAINER, f'{_AGE} or label_replace({_SINCE_STEP}, "of", "step", "", "") and on (job, instance) {_AGE}'
)
