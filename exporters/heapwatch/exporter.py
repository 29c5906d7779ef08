"""Assembles, serves and stops the parts of a trainer's exporter."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prometheus_client import Metric

from heapwatch.collectors.bodies import BodyCollector, WalkerNames
from heapwatch.collectors.buffers import BufferCollector
from heapwatch.collectors.declared import EntityCollector, EventCollector, ObjectCollector, SizeCollector
from heapwatch.collectors.explanation import ExplanationCollector
from heapwatch.collectors.gpu import CompiledCollector, GpuCollector
from heapwatch.collectors.limits import LimitCollector
from heapwatch.collectors.process import (
    AllocatorCollector,
    BaselineCollector,
    InfoCollector,
    ProcessCollector,
    StandardCollector,
    UniqueMemoryCollector,
    array_task,
    current_rank,
)
from heapwatch.collectors.progress import PhaseCollector, ProgressCollector
from heapwatch.collectors.readings import LEVEL_SERIES, Readings
from heapwatch.collectors.self_monitoring import CleanupCollector, ExporterCollector
from heapwatch.explain.engine import Explainer
from heapwatch.explain.findings import Explanation, headline
from heapwatch.explain.program import Program
from heapwatch.http.addresses import LOOPBACK
from heapwatch.http.endpoints import ServedTrainer
from heapwatch.http.guards import checked_token
from heapwatch.http.server import Server, serve
from heapwatch.http.status import Status
from heapwatch.judge.measured import STEP_SECONDS
from heapwatch.judge.verdict import SERIOUS
from heapwatch.machine.elsewhere import OtherMachines
from heapwatch.machine.visits import WorkerVisits
from heapwatch.measure.gpu import torch_pools
from heapwatch.measure.introspection.roots import Root
from heapwatch.measure.objects.instances import Census
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.recording.checkpoints import Checkpoint, Checkpoints, Memory
from heapwatch.registration import Registration
from heapwatch.runtime.cleanup import CleanupQueue
from heapwatch.runtime.exposition import CollectionStuck, Collector, Exposition, Snapshots
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.labels import checked_name
from heapwatch.runtime.owned_reads import OwnedReads
from heapwatch.runtime.safe_point import DEFAULT_BUDGET, DEFAULT_INTERVAL, SafePoint, Sampler
from heapwatch.runtime.sources import Source

if TYPE_CHECKING:
    from heapwatch.measure.objects.tracked import Large
    from heapwatch.recording.journal import Journal, Sink

log = logging.getLogger("heapwatch")
CHECKPOINT_SECONDS = 0.2  # CPU time that the counts of one checkpoint may take


@dataclass(frozen=True)
class Settings:
    """What a trainer chooses for its exporter.

    Attributes:
        name: the trainer's name, label `trainer` of `trainer_info`.
        framework: the library that trains.
        run: which run this is.
        profile: whose default limits apply, a name of `heapwatch.judge.limits.PROFILES`.
        walker_names: also export the `walker_*` names of the Walker system.
        interval: least number of seconds between samples of live objects.
        budget: CPU seconds per second that all samples of live objects together may take.

    Raises:
        ValueError: for a value that is not allowed.

    """

    name: str = "trainer"
    framework: str = ""
    run: str = ""
    profile: str = "default"
    walker_names: bool = False
    interval: float = DEFAULT_INTERVAL
    budget: float = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        checked_name("trainer", self.name)
        for name, value in (("interval", self.interval), ("budget", self.budget)):
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
        if self.budget > 1:
            raise ValueError(
                f"budget must be a share of the time, above 0 and at most 1, got {self.budget!r}"
            )


class Exporter:
    """Collectors, safe point, cleanup queue, explainer and server of one trainer."""

    def __init__(self, settings: Settings) -> None:
        name, interval = settings.name, settings.interval
        self.name = name
        self.interval = interval
        self.is_running = False
        self.server: Server | None = None
        self.registration: Registration | None = None

        self.failures = Failures()
        self.memory = ResidentMemory()
        self.safe_point = SafePoint(self.failures, budget=settings.budget, tick_seconds=min(1.0, interval))
        self.exposition = Exposition(self.failures, self.safe_point)
        self.cleanup_queue = CleanupQueue(
            self._levels, self.safe_point.wake, self.safe_point.seconds_since_visit
        )
        self.limits = LimitCollector(settings.profile)
        self.progress = ProgressCollector(self.failures, self.safe_point)
        self.phases = PhaseCollector(self.failures, self.safe_point, self.memory)
        self.entities = EntityCollector(self.failures, interval)
        self.events = EventCollector(self.failures, interval)
        self.buffers = BufferCollector(self.failures, interval)
        self.sizes = SizeCollector(self.failures, interval)
        self.objects = ObjectCollector(interval)
        self.checkpoints = Checkpoints(self._memory_now, self._counted_since)
        self._counting: list[Any] = [self.entities, self.events, self.buffers]
        tree = ProcessTree()
        unique = UniqueMemoryCollector(tree)
        self._gpu = GpuCollector(self.failures, tree)
        self._process: list[Collector] = [unique, ProcessCollector(tree, lambda: unique.workers)]
        self._costly_families: list[Metric] = []
        self._journal: Journal | None = None
        self.reported_leak: Callable[[], str] = str
        self.roots: list[Root] = []
        self.snapshots = Snapshots(self.exposition)
        program = Program(
            extra_roots=lambda: self.roots,
            progress=self.progress.so_far,
            readings=self._recent_readings,
            paths=self.buffers.paths,
            bounded=lambda: self._readings([self.events, self.buffers, self.buffers.sizes]).bounded(),
            found_world=self._count_world,
            other_machines=OtherMachines().count,
            workers=WorkerVisits(),
        )
        self.explainer = Explainer(program, reads=OwnedReads(self.safe_point))
        self._status = Status(self.explanation, last_cleanup=lambda: self.cleanup_queue.last)
        self._register_all(settings)

    def _register_all(self, settings: Settings) -> None:
        baseline = BaselineCollector(self.memory.read)
        self.safe_point.on_visit += [baseline.note, self.cleanup_queue.run_pending]
        self.safe_point.on_tick.append(self.progress.observe)
        self.cleanup_queue.on_done += [self._sample_costly_soon, self._note_cleanup]
        collectors: list[Collector] = [
            StandardCollector(),
            InfoCollector(self.name, settings.framework, settings.run or array_task(), current_rank()),
            *self._process,
            baseline,
            AllocatorCollector(),
            self._gpu,
            CompiledCollector(),
            self.phases,
            self.progress,
            self.limits,
            CleanupCollector(self.cleanup_queue, lambda: self._token() is not None),
            ExplanationCollector(self.explainer),
            ExporterCollector(self.failures, self.safe_point, self.exposition.collect_seconds.copy),
        ]
        for collector in collectors:
            self.register(collector)
        # Sampled from the first declaration on.
        for declared in (*self._counting, self.buffers.sizes, self.sizes, self.objects):
            self.exposition.register(declared)
        if settings.walker_names:
            self.register(WalkerNames(lambda: self._readings(self._counting), self.memory.read))

    def register(self, collector: Collector, *, anywhere: bool = True) -> None:
        """Collect from now on, and sample where the collector is a sampler.

        With `anywhere` a scrape may sample it in its own thread until the trainer's first safe point.
        """
        self.exposition.register(collector)
        if isinstance(collector, Sampler):
            self.safe_point.schedule(collector, anywhere=anywhere)

    def sample_sizes_every(self, interval: int, unit: str) -> None:
        """Measure named objects after every `interval` of `unit`: at once if that is at a safe point."""
        reached = 0

        def due(progressed: str, total: int) -> None:
            nonlocal reached
            # Several may be counted at once.
            if progressed == unit and total // interval > reached:
                reached = total // interval
                self.safe_point.prompt(self.sizes)
                self.safe_point.visit(stepping=False, at_once=self.sizes)

        self.progress.on_progress.insert(0, due)  # a memory report of this moment has these sizes

    def _sample_costly_soon(self) -> None:
        """Sample costly levels after a cleanup; they would be old for minutes otherwise."""
        costly: list[Sampler] = [*self.objects.samplers, self.sizes, self.buffers.sizes]
        for sampler in costly:
            self.safe_point.prompt(sampler)

    def _note_cleanup(self) -> None:
        """Pass the freed bytes of a cleanup to the explainer, except for the trainer's own regular cleanups.

        Those may come every minute, and a leak between them has to be found nevertheless.
        """
        result, memory = self.cleanup_queue.last, "resident_memory_bytes"
        if (
            result is None
            or memory not in result.freed
            or (result.action, result.trigger) == ("regular", "trainer")
        ):
            return
        self.explainer.cleaned(result.action, result.freed[memory], result.after[memory])

    def checkpoint(self, label: str) -> Checkpoint | None:
        """Record memory and counts at a named point; None if memory could not be read."""
        phase = self.phases.just_ended
        try:
            checkpoint = self.checkpoints.take(label)
        except Exception as error:
            self.failures.record("checkpoints", label, error)
            return None
        if self._journal is not None:
            self._journal.checkpoint(checkpoint.label, phase, checkpoint.resident_bytes)
        return checkpoint

    def _counted_since(self, moment: float) -> Census:
        """Visit the safe point, and count what was not counted since a moment, if there is time for it."""
        self.safe_point.visit(stepping=False)
        self.safe_point.sample_now(*self.objects.not_counted_since(moment, CHECKPOINT_SECONDS))
        return self.objects.latest

    def count_bodies(self, bodies: BodyCollector) -> None:
        """Count a world's bodies: at safe points alone, and none inside the world's own step."""
        self.safe_point.blocked = bodies.locked
        self._counting.append(bodies)
        self.register(bodies, anywhere=False)

    def _count_world(self, name: str, count: Callable[[], float]) -> None:
        """Count the bodies of a world that the explainer found, if the trainer has declared none."""
        if not any(isinstance(counting, BodyCollector) for counting in self._counting):
            self.entities.count(name, Source.of(count))
            self.safe_point.schedule(self.entities)

    def serve(
        self, host: str, port: int, *, token: str | None, port_search: bool, local_cleanup: bool = False
    ) -> None:
        """Serve, and join the running stack; `begin` is the rest of a start.

        Raises:
            OSError: when the port is taken or the host is not ours.
            ValueError: the token cannot travel in a header, or `local_cleanup` with a host that is not
                loopback.

        """
        if local_cleanup and host not in LOOPBACK:
            allowed = ", ".join(sorted(LOOPBACK))
            raise ValueError(f"cleanups without a token are accepted only on {allowed}, not on {host}")
        if token is not None:
            checked_token(token)
        trainer = ServedTrainer(
            self.snapshots,
            self._status,
            self.cleanup_queue,
            explain=lambda: self.explanation().as_json(),
            token=self._token,
            local_cleanup=local_cleanup,
        )
        server = self.server = serve(host, port, trainer, port_search=port_search)
        self.registration = Registration(host, server.port, token=token, trainer=self.name)
        self.registration.refresh()
        server.on_observe.append(self._refresh_registration)

    def begin(self) -> None:
        """Start sampling and explaining, also where nothing is served."""
        self.is_running = True
        self.safe_point.start()
        self.explainer.start()

    def explanation(self) -> Explanation:
        """The newest explanation of what grows and leaks."""
        return self.explainer.now()

    def _recent_readings(self) -> Readings | None:
        """Every exposed level, as a recent scrape found it, else as it is now; None if a collector hangs.

        Where nothing is served, only what was declared: the rest costs too much in a process that is visited.
        """
        if self.server is None:
            return self._levels_for_points(costly=False)
        try:
            return Readings(self.snapshots.recent(STEP_SECONDS / 2, timeout=STEP_SECONDS).families)
        except CollectionStuck:
            return None

    def _token(self) -> str | None:
        """The secret of cleanup requests: the trainer's own, or that of the stack it has joined."""
        registration = self.registration
        return None if registration is None else registration.token

    def _refresh_registration(self) -> None:
        registration = self.registration
        try:
            if registration is not None and registration.refresh():
                log.info("%s: %s", self.name, registration.describe())
        except Exception as error:  # levels are observed nevertheless
            self.failures.record("registration", "stack", error)

    def stop(self, *, log_findings: bool = True, failure: str = "") -> None:
        """Log the findings, close the records, and stop serving and sampling. A second call does nothing.

        Records are closed first, as there may be no time for the rest. The stack alerts on the end of a
        trainer with a `failure`, which says why it failed.
        """
        was_running, self.is_running = self.is_running, False
        self.explainer.conclude()
        registration, self.registration = self.registration, None
        if self._journal is not None:
            self._journal.stop()
        if was_running and log_findings and self.explainer.enabled:
            log.info("%s has ended: %s", self.name, self._conclusion())
        if registration is not None:
            registration.remove(failure)
        if self.server is not None:
            self.server.stop()
            self.server = None
        self.safe_point.stop()
        self.explainer.stop()
        self._gpu.close()
        self.memory.close()

    def _conclusion(self) -> str:
        """The result of the run in a line: that of the memory reports, if only they found a leak."""
        explanation = self.explanation()
        reported = "" if explanation.verdict in SERIOUS else self.reported_leak()
        return f"{reported} {explanation.after_cleanup}".strip() if reported else headline(explanation)

    def add_sink(self, sink: Sink, is_due: Callable[[str, int], bool] | None = None) -> None:
        """Hand the points of the run to `sink`: the ends of phases and cycles, with what was sampled last.

        `is_due` tells of a unit and its total whether the sink needs the point of that moment itself.
        """
        if self._journal is None:
            from heapwatch.recording.journal import Journal  # for a trainer that records, reports or tracks

            self._journal = Journal(
                self.failures,
                self.memory.read,
                self._levels_for_points,
                lambda: self.objects.latest,
            )
            self.phases.on_end.append(self._journal.phase_ended)
            self.progress.on_progress.append(self._journal.progressed)
        self.safe_point.sample_unowned()
        self._journal.add_sink(sink, is_due)

    def record_large(self, objects: Sequence[Large]) -> None:
        """Pass the largest objects to the sinks."""
        if self._journal is not None:
            self._journal.found_large(tuple(objects))

    def abandon(self) -> None:
        """Switch everything off in a forked child: server, target and safe points belong to the parent."""
        self.safe_point.abandon()
        self.explainer.abandon()
        self.memory.reopen()
        if self._journal is not None:
            self._journal.abandon()
        if self.server is not None:
            self.server.server_close()
        self.server = self.registration = None
        self.is_running = False

    def _levels(self) -> dict[str, Any]:
        """Levels for a comparison before and after a cleanup, sampled at once in the trainer's thread."""
        self.safe_point.sample_now(*self._counting)
        readings = self._readings(self._counting)
        levels: dict[str, Any] = {"resident_memory_bytes": self.memory.read()}
        bodies = readings.by("trainer_bodies", "type")
        if bodies:
            levels["bodies"] = round(sum(bodies.values()))
        for key, resource in (("entities", "entities"), ("events", "events"), ("buffers", "buffer")):
            counts = readings.by(*LEVEL_SERIES[resource])
            levels[key] = {name: round(value) for name, value in counts.items()}
        return levels

    def _memory_now(self) -> Memory:
        pools = torch_pools().values()
        gpu = (sum(pool.in_use for pool in pools), sum(pool.held for pool in pools)) if pools else ()
        return Memory(self.memory.read(), self.memory.read_virtual(), *gpu)

    def _levels_for_points(self, costly: bool) -> Readings:
        """Levels for a point of the run; those of processes and GPUs are read anew only if `costly`."""
        if costly:
            self._costly_families = self._families([*self._process, self._gpu])
        sampled: list[Collector] = [
            *self._counting,
            self.buffers.sizes,
            self.sizes,
            self.objects,
            self.limits,
        ]
        return Readings(self._costly_families + self._families(sampled))

    def _readings(self, collectors: Iterable[Collector]) -> Readings:
        return Readings(self._families(collectors))

    def _families(self, collectors: Iterable[Collector]) -> list[Metric]:
        return [family for collector in collectors for family in self.exposition.read(collector)]
