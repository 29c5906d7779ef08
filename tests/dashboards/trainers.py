"""A made-up trainer: what it would expose, what would be recorded about it, and the alerts it would raise."""

from collections.abc import Callable, Mapping, Sequence

from tests.dashboards.series import Clock, Series, Shape, Value, noisy, scaled, slope, within

GROWTH_SAMPLES = 40
DEFAULT_LIMITS = (
    ("memory", "trainer", {"warning": 1e9, "critical": 1.5e9, "emergency": 2e9}),
    ("memory", "since start", {"warning": 35e9, "critical": 100e9}),
    ("bodies", "all", {"warning": 500, "critical": 1000, "emergency": 1501}),
    ("bodies", "static", {"critical": 300}),
    ("entities", "food_sources", {"warning": 50}),
)
MEMORY_SHARES = {"warning": 0.85, "critical": 0.93, "emergency": 0.97}
DEFAULT_GROWTH_LIMITS = (
    ("memory", "trainer", "minute", 20e6),
    ("bodies", "all", "minute", 10),
    ("entities", "food_sources", "minute", 5),
    ("events", "death", "minute", 50),
    ("objects", "Episode", "minute", 2),
    ("object_size", "policy.state_dict", "epoch", 5e6),
    ("memory", "trainer", "generation", 5e9),
    ("gpu_memory", "0", "minute", 20e6),
)


class Trainer:
    """Collects the series of one instance; shapes are in minutes since the start of the history.

    Args:
        started: the minute of the last start of its process.
        lives: the minutes between which it announces itself.
        rank: which of how many in a distributed run.

    """

    def __init__(
        self,
        clock: Clock,
        instance: str,
        trainer: str,
        framework: str,
        started: float = 0,
        lives: tuple[float, float] = (0, float("inf")),
        rank: tuple[int, int] | None = None,
    ) -> None:
        self.clock = clock
        self.lives = lives
        self.target = {"job": "trainer", "instance": instance}
        self.series: list[Series] = []
        self.started = started
        self.add("up", 1)
        ranked = {} if rank is None else {"rank": str(rank[0]), "world_size": str(rank[1])}
        self.add("trainer_info", 1, trainer=trainer, framework=framework, run="demo", **ranked)
        # The name of the address says what it is; a life before the last start has a name of its own.
        name = instance.partition(":")[0]
        self.add("job:trainer:name", within(1, started), trainer_name=f"{name}, 11-24 12:00")
        if started > lives[0]:
            self.add("job:trainer:name", within(1, 0, started), trainer_name=f"{name}, 11-24 10:00")
        for start in ("process_start_time_seconds", "job:trainer_process:start"):
            self.add(start, lambda m: clock.start + (started if m >= started else -7200) * 60)
        for collector, cost in {"process": 4e-4, "bodies": 6e-4, "buffers": 1.1e-3, "objects": 4e-3}.items():
            of = {"collector": collector}
            self.count("trainer_exporter_collect_errors_total", lambda m: float(int(m / 90)), **of)
            self.count("trainer_exporter_sample_seconds_total", lambda m, c=cost: 4 * c * m, **of)
            self.add("trainer_exporter_sample_age_seconds", lambda m: 1 + m % 4, **of)
        self.add("trainer_exporter_budget_ratio", 0.005)
        self.add("trainer_exporter_safe_point_age_seconds", noisy(0.25, 0.05, 30))

    def add(self, name: str, shape: Shape | Sequence[Value], /, **labels: str) -> list[Value]:
        """One series of this trainer; returns its values."""
        values = list(shape) if isinstance(shape, Sequence) else self.clock.each(within(shape, *self.lives))
        self.series.append(Series(name, {**self.target, **labels}, values))
        return values

    def count(self, name: str, shape: Shape, **labels: str) -> None:
        """A counter that starts again at zero when the process does."""
        before = self.started + 120

        def value(minute: float) -> Value:
            return shape(minute - self.started if minute >= self.started else minute + before - self.started)

        self.add(name, value, **labels)

    def level(self, resource: str, component: str, values: Sequence[Value]) -> None:
        """The recorded level and growth per minute of something watched."""
        labels = {"resource": resource, "component": component}
        self.add("job:trainer_resource:level", values, **labels)
        per_minute = scaled(slope(values, GROWTH_SAMPLES), 60 / self.clock.step)
        self.add("job:trainer_resource:growth_per_minute", per_minute, **labels)

    def total(self, resource: str, values: Sequence[Value]) -> None:
        """The recorded sum of all components, and its growth."""
        self.level(resource, "all", values)
        renamed = self.series[-2]
        self.series[-2] = Series("job:trainer_resource:total", renamed.labels, renamed.values)

    def memory(self, resident: Shape, limit: float, workers: float = 0) -> list[Value]:
        """Process memory and its limit."""
        values = self.add("trainer_process_resident_memory_bytes", resident, role="trainer")
        self.level("memory", "trainer", values)
        together = [None if v is None else v + workers for v in values]
        self.add("job:trainer_resource:total", together, resource="memory", component="all")
        began = next((v for v in values if v is not None), 0.0)
        since = [None if v is None else v - began for v in values]
        self.add("job:trainer_resource:total", since, resource="memory", component="since start")
        for severity, share in MEMORY_SHARES.items():
            labels = {"resource": "memory", "component": "all", "severity": severity}
            self.add("job:trainer_limit:effective", share * limit, **labels)
        roles = {"trainer": (values, 1.4)}
        if workers:
            held = self.add("trainer_process_resident_memory_bytes", workers, role="worker")
            self.level("memory", "worker", held)
            roles["worker"] = (held, 4.2)
        for role, (held, cores) in roles.items():
            self.add("trainer_process_unique_memory_bytes", scaled(held, 0.9), role=role)
            self.count("trainer_process_cpu_seconds_total", lambda m, c=cores: m * 60 * c, role=role)
            self.add("trainer_processes", 1 if role == "trainer" else 4, role=role)
        self.add("trainer_allocator_used_bytes", scaled(values, 0.8))
        self.add("trainer_allocator_retained_bytes", scaled(values, 0.07))
        self.add("trainer_memory_limit_bytes", limit)
        self.add("job:trainer_memory:available_bytes", lambda minute: 0.95 * limit)
        return values

    def limits(self, **factors: float) -> None:
        """Limits in force: the defaults, multiplied for the resources named here."""
        for resource, component, severities in DEFAULT_LIMITS:
            for severity, limit in severities.items():
                value = limit * factors.get(resource, 1)
                labels = {"resource": resource, "component": component, "severity": severity}
                self.add("job:trainer_limit:effective", value, **labels)
        for resource, component, per, limit in DEFAULT_GROWTH_LIMITS:
            labels = {"resource": resource, "component": component, "per": per}
            self.add("job:trainer_growth_limit:effective", limit, **labels)

    def buffer(
        self, name: str, items: Shape, item_bytes: float, capacity: float | None, attached: int = 0
    ) -> list[Value]:
        """A replay buffer, unbounded without capacity; returns the bytes it holds."""
        counts = self.add("trainer_buffer_items", lambda minute: float(int(items(minute) or 0)), buffer=name)
        held = self.add("trainer_buffer_bytes", [(count or 0) * item_bytes for count in counts], buffer=name)
        if capacity is not None:
            self.add("trainer_buffer_capacity_items", capacity, buffer=name)
            self.add("trainer_buffer_capacity_bytes", lambda minute: capacity * item_bytes, buffer=name)
        self.add("trainer_buffer_attached_tensors", attached, buffer=name)
        self.level("buffer", name, held)
        return held

    def progress(self, until: float = float("inf"), **per_minute: float) -> None:
        """Counters of progress; nothing happens any more after minute `until`."""
        for unit, rate in per_minute.items():
            self.count("trainer_progress_total", lambda m, r=rate: float(int(min(m, until) * r)), unit=unit)
        stamp = self.clock.start
        self.add("trainer_last_progress_timestamp_seconds", lambda minute: stamp + 60 * min(minute, until))

    def growth_per_cycle(self, resource: str, component: str, per: str, growth: Shape) -> None:
        """What was gained from one epoch or generation to the next."""
        labels = {"resource": resource, "component": component, "per": per}
        self.add("job:trainer_resource:growth_per_cycle", growth, **labels)

    def phase(self, name: str, end: Shape, gain: Shape, seconds: float, per_minute: float) -> None:
        """A phase of the training cycle."""
        self.add("trainer_phase_end_resident_memory_bytes", end, phase=name)
        self.add("trainer_phase_memory_delta_bytes", gain, phase=name)
        self.count("trainer_phase_duration_seconds_count", lambda m: float(int(m * per_minute)), phase=name)
        self.count(
            "trainer_phase_duration_seconds_sum", lambda m: float(int(m * per_minute)) * seconds, phase=name
        )

    def cleanups(self, freed: Sequence[tuple[float, float]], resource: str, removed: float) -> None:
        """Emergency cleanups: (minute, bytes freed), and how many of a resource each removed."""

        def add(name: str, of_each: Callable[[float], float], **labels: str) -> None:
            total = self.clock.each(lambda m: sum(of_each(size) for at, size in freed if m >= at))
            self.add(name, total, action="emergency", **labels)
            self.add(name, 0, action="regular", **labels)

        add("trainer_cleanup_duration_seconds_count", lambda size: 1)
        add("trainer_cleanup_freed_bytes_total", lambda size: size)
        add("trainer_cleanup_removed_total", lambda size: removed, resource=resource)

    def leaks(self, resource: str, component: str, per_minute: float, start: float) -> None:
        """What leaks, from this minute on."""
        labels = {"resource": resource, "component": component, "reason": "growth"}
        self.add("job:trainer_leak:current", within(per_minute / 60, start), **labels)

    def growing_path(
        self, path: str, kind: str, site: str, values: Sequence[Value], share: float, remedy: str
    ) -> None:
        """What the trainer's own search found: a path from a root of the program to what leaks."""
        labels = {"path": path, "type": kind, "kind": "container"}
        rates = scaled(slope(values, GROWTH_SAMPLES), 60 / self.clock.step)
        self.add("trainer_growing_path_bytes", values, **labels)
        self.add("trainer_growing_path_growth_bytes_per_minute", rates, **labels)
        self.add("trainer_growing_path_share_ratio", share, **labels)
        self.add("trainer_growing_path_leak", 1, **labels, site=site, remedy=remedy)

    def group(
        self, name: str, private: Shape, per_minute: float, processes: int = 1, growing: int = 0
    ) -> None:
        """A group of processes on a machine; `growing` of them leak."""
        self.add("machine_group_memory_bytes", private, group=name, kind="private")
        self.add("machine_group_memory_bytes", 0, group=name, kind="shared")
        self.add("machine_group_processes", processes, group=name)
        self.add("machine_group_growing_processes", growing, group=name)
        self.add("machine_group_growth_bytes_per_minute", per_minute, group=name)

    def says(self, *changes: tuple[float, str]) -> None:
        """The word of the trainer's own judge from each minute on."""
        for word in ("healthy", "warm-up", "filling", "too early", "growing", "will not fit", "leak"):

            def value(minute: float, word: str = word) -> Value:
                return next(
                    (float(said == word) for since, said in reversed(changes) if minute >= since), None
                )

            self.add("trainer_memory_verdict", value, verdict=word)

    def lost(
        self, minute: float, cause: str, memory: float, leak: Mapping[str, str], per_minute: float
    ) -> None:
        """It ended unexpectedly at this minute; what the rules recorded as known last."""
        self.lives = (minute, float("inf"))
        stamp = self.clock.start + 60 * minute
        self.add("job:trainer:lost", stamp, trainer="x", cause=cause)
        self.add("job:trainer:gone", 1)
        self.add("job:trainer_known:memory_bytes", memory)
        self.add("job:trainer_known:available_bytes", lambda m: memory / 0.9)
        self.add("job:trainer_known:leak_bytes_per_minute", per_minute, **leak)
        name = next(one.labels["trainer_name"] for one in self.series if one.name == "job:trainer:name")
        self.add("job:trainer:name", 1, trainer_name=name)
        labels = {"alertname": "TrainerDown", "severity": "critical", "kind": "health"}
        about = {"resource": "trainer", "component": "process"}
        self.add("ALERTS", 1, alertstate="firing", **labels, **about)
        self.add("ALERTS_FOR_STATE", stamp, **labels, **about)

    def alert(
        self,
        name: str,
        severity: str,
        kind: str,
        resource: str,
        component: str,
        start: float,
        end: float = float("inf"),
    ) -> None:
        """Pending for five minutes, then firing until `end`."""
        labels = {
            "alertname": name,
            "severity": severity,
            "kind": kind,
            "resource": resource,
            "component": component,
        }
        self.add("ALERTS", within(1, start, start + 5), alertstate="pending", **labels)
        self.add("ALERTS", within(1, start + 5, end), alertstate="firing", **labels)
        since = self.clock.start + start * 60
        self.add("ALERTS_FOR_STATE", within(since, start, end), **labels)
