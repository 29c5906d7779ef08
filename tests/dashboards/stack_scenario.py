"""What Prometheus, Alertmanager and the receiver would say about themselves."""

from tests.dashboards.series import Clock, Series, Shape, noisy

SERVICES = {
    "prometheus": "127.0.0.1:9090",
    "alertmanager": "127.0.0.1:9093",
    "receiver": "127.0.0.1:9095",
    "dashboards": "127.0.0.1:3009",
}
RULE_GROUPS = ("limits", "growth", "leaks", "thresholds")
BUCKETS = (1, 5, 15, 30, 60, 120, 300, 600, 1200)


def stack(clock: Clock) -> list[Series]:
    """All services up; the receiver restarted once; a few actions, most of which helped."""
    result: list[Series] = []
    total = clock.minutes

    def add(service: str, name: str, shape: Shape, **labels: str) -> None:
        target = {"job": "stack", "instance": SERVICES[service], "service": service}
        result.append(Series(name, {**target, **labels}, clock.each(shape)))

    def down(minute: float) -> bool:
        return 0.5 * total <= minute < 0.5 * total + 3

    for service in SERVICES:
        add(service, "up", lambda m, s=service: 0 if s == "receiver" and down(m) else 1)
        add(service, "scrape_duration_seconds", noisy(lambda m: 0.009, 0.001, 20))
        add(service, "scrape_samples_scraped", lambda m: 400)
        add(service, "process_start_time_seconds", lambda m: clock.start - 3600)
        add(service, "process_resident_memory_bytes", noisy(lambda m: 95e6, 1e6, 21))
        add(service, "process_cpu_seconds_total", lambda m: m * 60 * 0.02)
    for group in RULE_GROUPS:
        labels = {"rule_group": f"rules/{group}.yml;{group}"}
        add(
            "prometheus",
            "prometheus_rule_group_last_duration_seconds",
            noisy(lambda m: 0.004, 0.0004, 22),
            **labels,
        )
        add("prometheus", "prometheus_rule_group_interval_seconds", lambda m: 30, **labels)
        add(
            "prometheus",
            "prometheus_rule_evaluation_failures_total",
            lambda m: float(m > 0.8 * total),
            **labels,
        )
        add(
            "prometheus",
            "prometheus_rule_group_iterations_missed_total",
            lambda m: float(m > 0.7 * total),
            **labels,
        )
    add("prometheus", "prometheus_tsdb_head_series", noisy(lambda m: 2400, 10, 23))
    add("prometheus", "prometheus_tsdb_head_samples_appended_total", lambda m: m * 9600)
    add("prometheus", "prometheus_notifications_sent_total", lambda m: float(int(m / 4)), alertmanager="a")
    add("prometheus", "prometheus_notifications_dropped_total", lambda m: 0)
    add("prometheus", "prometheus_notifications_errors_total", lambda m: 0, alertmanager="a")
    add("prometheus", "prometheus_notifications_queue_length", lambda m: 0)
    add("alertmanager", "alertmanager_alerts", lambda m: 3, state="active")
    add(
        "alertmanager", "alertmanager_notifications_total", lambda m: float(int(m / 5)), integration="webhook"
    )
    add(
        "alertmanager",
        "alertmanager_notifications_failed_total",
        lambda m: 2 if m > 0.5 * total else 0,
        integration="webhook",
    )
    for part in ("alertmanager", "delivery", "receiver", "heartbeat"):
        result.append(Series("job:stack:alert_path", {"part": part}, clock.each(lambda m: 0)))
    result.extend(_receiver(clock))
    return result


def _receiver(clock: Clock) -> list[Series]:
    total = clock.minutes
    result: list[Series] = []

    def add(name: str, shape: Shape, **labels: str) -> None:
        target = {"job": "stack", "instance": SERVICES["receiver"], "service": "receiver"}
        result.append(Series(name, {**target, **labels}, clock.each(shape)))

    def helped(minute: float) -> int:
        return sum(minute >= share * total for share in (0.65, 0.85))

    def in_vain(minute: float) -> int:
        return int(minute >= 0.7 * total)

    def acted(minute: float) -> int:
        return helped(minute) + in_vain(minute)

    add("heapwatch_receiver_alerts_received_total", lambda m: float(int(m / 5)))
    for reason, minutes in (("cooldown", 15), ("no_action", 25), ("resolved", 60)):
        add(
            "heapwatch_receiver_alerts_suppressed_total",
            lambda m, n=minutes: float(int(m / n)),
            reason=reason,
        )
    add(
        "heapwatch_receiver_actions_total",
        lambda m: float(helped(m)),
        action="emergency",
        result="helped",
    )
    add(
        "heapwatch_receiver_actions_total",
        lambda m: float(in_vain(m)),
        action="emergency",
        result="no_effect",
    )
    add("heapwatch_receiver_freed_bytes_total", lambda m: 4e8 * acted(m), action="emergency")
    add("heapwatch_receiver_removed_total", lambda m: 260.0 * acted(m), action="emergency", resource="bodies")
    add("job:machine_memory:unwatched_bytes", noisy(lambda m: 6e9, 5e7, 24), machine="0c5d1f2e3a4b")
    add("heapwatch_receiver_queue_length", lambda m: 1 if acted(m) != acted(m - 1) else 0)
    trainer = {"trainer_job": "trainer", "trainer_instance": "trading-filling:7777"}
    add("heapwatch_receiver_cleanup_no_effect", lambda m: 1 if m >= 0.7 * total else 0, **trainer)
    stamp = clock.start
    add("heapwatch_receiver_last_watchdog_timestamp_seconds", lambda m: stamp + 60 * (m - m % 1))
    for bound in (*map(float, BUCKETS), float("inf")):
        add(
            "heapwatch_receiver_alert_to_effect_seconds_bucket",
            lambda m, b=bound: float(sum(seconds <= b for seconds in (8, 22, 41)[: acted(m)])),
            le="+Inf" if bound == float("inf") else f"{bound:g}",
        )
    add("heapwatch_receiver_alert_to_effect_seconds_count", lambda m: float(acted(m)))
    add("heapwatch_receiver_alert_to_effect_seconds_sum", lambda m: float(sum((8, 22, 41)[: acted(m)])))
    return result
