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
        add(service, "process_start_time_seconds", clock.start - 3600)
        add(service, "process_resident_memory_bytes", noisy(95e6, 1e6, 21))

    def prometheus(name: str, shape: Shape, **labels: str) -> None:
        add("prometheus", f"prometheus_{name}", shape, **labels)

    for group in RULE_GROUPS:
        labels = {"rule_group": f"rules/{group}.yml;{group}"}
        prometheus("rule_evaluation_failures_total", lambda m: float(m > 0.8 * total), **labels)
    prometheus("notifications_sent_total", lambda m: float(int(m / 4)), alertmanager="a")
    prometheus("notifications_dropped_total", 0)
    prometheus("notifications_errors_total", 0, alertmanager="a")
    for name, shape in (
        ("alertmanager_notifications_total", lambda m: float(int(m / 5))),
        ("alertmanager_notifications_failed_total", lambda m: 2 if m > 0.5 * total else 0),
    ):
        add("alertmanager", name, shape, integration="webhook")
    for part in ("alertmanager", "delivery", "receiver", "heartbeat"):
        result.append(Series("job:stack:alert_path", {"part": part}, clock.each(0)))
    add("receiver", "job:machine_memory:unwatched_bytes", noisy(6e9, 5e7, 24), machine="0c5d1f2e3a4b")

    def receiver(name: str, shape: Shape, **labels: str) -> None:
        add("receiver", f"heapwatch_receiver_{name}", shape, **labels)

    def helped(minute: float) -> int:
        return sum(minute >= share * total for share in (0.65, 0.85))

    def in_vain(minute: float) -> int:
        return int(minute >= 0.7 * total)

    def acted(minute: float) -> int:
        return helped(minute) + in_vain(minute)

    for reason, minutes in (("cooldown", 15), ("no_action", 25), ("resolved", 60)):
        receiver("alerts_suppressed_total", lambda m, n=minutes: float(int(m / n)), reason=reason)
    receiver("actions_total", helped, action="emergency", result="helped")
    receiver("actions_total", in_vain, action="emergency", result="no_effect")
    receiver("queue_length", lambda m: 1 if acted(m) != acted(m - 1) else 0)
    trainer = {"trainer_job": "trainer", "trainer_instance": "trading-filling:7777"}
    receiver("cleanup_no_effect", in_vain, **trainer)
    receiver("last_watchdog_timestamp_seconds", lambda m: clock.start + 60 * (m - m % 1))
    for bound in (*map(float, BUCKETS), float("inf")):
        receiver(
            "alert_to_effect_seconds_bucket",
            lambda m, b=bound: float(sum(seconds <= b for seconds in (8, 22, 41)[: acted(m)])),
            le="+Inf" if bound == float("inf") else f"{bound:g}",
        )
    return result
