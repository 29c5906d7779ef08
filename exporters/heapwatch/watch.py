"""What a trainer declares and calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from heapwatch import discovery
from heapwatch.cleanup import CleanupQueue, CleanupResult
from heapwatch.collectors.allocator import AllocatorCollector
from heapwatch.collectors.base import Collector, Sampler
from heapwatch.collectors.bodies import BodyCollector
from heapwatch.collectors.cleanups import CleanupCollector
from heapwatch.collectors.entities import EntityCollector
from heapwatch.collectors.events import EventCollector
from heapwatch.collectors.exporter import ExporterCollector
from heapwatch.collectors.info import InfoCollector
from heapwatch.collectors.limits import LimitCollector
from heapwatch.collectors.phases import Phase, PhaseCollector
from heapwatch.collectors.process import ProcessCollector
from heapwatch.collectors.progress import ProgressCollector
from heapwatch.collectors.standard import StandardCollector
from heapwatch.collectors.walker_names import WalkerNames
from heapwatch.exposition import Exposition
from heapwatch.failures import Failures
from heapwatch.labels import checked_name
from heapwatch.memory import ResidentMemory
from heapwatch.readings import Readings
from heapwatch.safepoint import SafePoint
from heapwatch.server import Server
from heapwatch.sources import Source, SourceGone, is_accessor
from heapwatch.status import Status

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger("heapwatch")

Function = TypeVar("Function", bound=Callable[..., Any])

# resource in a cleanup's levels -> the series it is read from, and the label that names the component
_LEVELS = {
    "entities": ("trainer_entities", "type"),
    "events": ("trainer_event_list_items", "list"),
    "buffers": ("trainer_buffer_items", "buffer"),
}


class Watch:
    """A trainer's exporter. ``heapwatch.start`` makes one and serves it.

    Declarations (``bodies``, ``entities``, ``events``, ``buffer``, ``objects``, ``size``, ``limit``,
    ``growth_limit``, ``on_cleanup``) raise ``ValueError`` for what is not allowed. What runs while training
    does (``step``, ``progress``, ``phase``) never raises: what goes wrong is counted in
    ``trainer_exporter_collect_errors_total`` and logged once.

    A source is an object (held weakly where its type allows), a function without arguments, or an attribute
    path from ``root``; it is found anew on each read.

    Args:
        name: the trainer's name, label ``trainer`` of ``trainer_info``.
        framework: the library that trains.
        run: which run this is.
        profile: whose default limits apply, ``default`` or ``aggressive``.
        walker_names: also export the Walker document's ``walker_*`` names.
        interval: seconds between samples of live objects at least.
        budget: share of wall time that all samples of live objects together may take.

    """

    def __init__(
        self,
        name: str = "trainer",
        *,
        framework: str = "",
        run: str = "",
        profile: str = "default",
        walker_names: bool = False,
        interval: float = 5.0,
        budget: float = 0.005,
    ) -> None:
        checked_name("trainer", name)
        _check_above_zero("interval", interval)
        _check_above_zero("budget", budget)
        if budget > 1:
            raise ValueError(f"budget must be a share of the time, above 0 and at most 1, got {budget!r}")
        self.name = name
        self.server: Server | None = None
        self._target: discovery.Target | None = None
        self._interval = interval
        self._root: Callable[[], Any] | None = None
        self._declared: set[tuple[str, str]] = set()

        self.failures = Failures()
        self._memory = ResidentMemory()
        self._safe_point = SafePoint(self.failures, budget=budget, tick_seconds=min(1.0, interval))
        self.exposition = Exposition(self.failures, self._safe_point)
        self.cleanup_queue = CleanupQueue(
            self._levels, self._safe_point.wake, self._safe_point.seconds_since_visit
        )
        self._limits = LimitCollector(profile)
        self._progress = ProgressCollector(self.failures, self._safe_point)
        self._phases = PhaseCollector(self.failures, self._safe_point, self._memory)
        self._entities = EntityCollector(self.failures, interval)
        self._events = EventCollector(self.failures, interval)
        self._bodies: BodyCollector | None = None

        self._safe_point.on_visit.append(self.cleanup_queue.run_pending)
        self._safe_point.on_tick.append(self._progress.observe)
        self._add(StandardCollector())
        self._add(InfoCollector(name, framework, run))
        self._add(ProcessCollector())
        self._add(AllocatorCollector())
        self._add(self._entities, anywhere=True)
        self._add(self._events, anywhere=True)
        self._add(self._phases)
        self._add(self._progress)
        self._add(self._limits)
        self._add(CleanupCollector(self.cleanup_queue))
        if walker_names:
            self._add(WalkerNames(self._walker_readings, self._memory.read))
        self._add(
            ExporterCollector(self.failures, self._safe_point, lambda: self.exposition.collect_seconds.copy())
        )

    @property
    def root(self) -> Any:
        """Where attribute paths start, held weakly where its type allows; None when unset or gone."""
        try:
            return self._root() if self._root is not None else None
        except SourceGone:
            return None

    @root.setter
    def root(self, trainer: Any) -> None:
        self._root = Source.of(trainer).read

    @property
    def port(self) -> int | None:
        """The port that is served; None before and after."""
        return None if self.server is None else self.server.port

    def step(self) -> None:
        """One step of training is done. A safe point; costs an addition and a look at a flag."""
        point = self._safe_point
        point.steps += 1
        if point.due:
            point.visit(stepping=True)

    def progress(self, unit: str, count: int = 1) -> None:
        """Count more of ``unit``: ``episode``, ``epoch``, ``generation``, or ``step`` for several at once."""
        self._progress.add(unit, count)
        if unit == "step" and self._safe_point.due:
            self._safe_point.visit(stepping=True)

    def phase(self, name: str) -> Phase:
        """A phase of the training cycle, as a context manager or a decorator. Its end is a safe point."""
        return self._phases.phase(name)

    def claim(self) -> None:
        """Make the calling thread the one whose steps are safe points: by default the first that steps."""
        self._safe_point.claim()

    def bodies(
        self,
        world: Any,
        classify: Callable[[Any], str | None] | None = None,
        *,
        owners: Any = None,
    ) -> None:
        """Count physics bodies by type.

        Args:
            world: a Box2D world, an accessor of one or several, or an accessor of ``{type: count}``.
            classify: returns a body's type, or None to leave it to the rule below.
            owners: accessor of groups of owned bodies, one group an agent, its main body first; or of
                ``{type: bodies}``. A static body is ``static``, a group's first ``agent``, its others
                ``dynamic``, and a moving body that nobody owns is ``unknown``.

        Raises:
            ValueError: when bodies are watched already, or an argument is none of these.

        """
        is_world = hasattr(world, "bodyCount") and hasattr(world, "bodies")
        if not (is_world or is_accessor(world)):
            raise ValueError(
                f"bodies needs a Box2D world, a function or an attribute path, got {type(world).__name__}"
            )
        if classify is not None and not callable(classify):
            raise ValueError(f"classify must be a function of a body, got {type(classify).__name__}")
        source = self._source(world)
        owned = None if owners is None else self._source(owners)
        self._declare("bodies", "bodies")
        self._bodies = BodyCollector(source, classify, owned, self.failures, self._interval)
        self._safe_point.blocked = self._bodies.locked
        self._add(self._bodies)

    def entities(self, name: str, source: Any) -> None:
        """Count things of the environment.

        Args:
            name: their type, such as ``food_sources``.
            source: a sized container, or an accessor of one or of a number.

        Raises:
            ValueError: for a bad name, one used twice, or a source that is neither.

        """
        counted = self._countable("entities", name, source)
        self._declare("entities", name)
        self._entities.add(name, counted)

    def events(self, name: str, source: Any, capacity: int | None = None) -> None:
        """Count the items of an event list.

        Args:
            name: the list's name, such as ``death``.
            source: a sized container, or an accessor of one or of a number.
            capacity: items it is meant to hold at most; by default its ``maxlen``.

        Raises:
            ValueError: for a bad name, one used twice, a source that is neither, or a capacity below 1.

        """
        if capacity is not None and (
            isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1
        ):
            raise ValueError(
                f"the capacity of events {name!r} must be a whole number above 0, got {capacity!r}"
            )
        counted = self._countable("events", name, source)
        self._declare("events", name)
        self._events.add(name, counted, capacity)

    def buffer(
        self, name: str, source: Any, *, items: Any = None, capacity: Any = None, nbytes: Any = None
    ) -> None:
        """Watch a replay buffer (placeholder)."""
        self._declare("buffer", name)

    def objects(self, *classes: type) -> None:
        """Count live instances (placeholder)."""

    def size(self, name: str, source: Any) -> None:
        """Watch the deep size of an object (placeholder)."""
        self._declare("size", name)

    def limit(
        self,
        resource: str,
        component: str = "",
        *,
        warning: float | None = None,
        critical: float | None = None,
        emergency: float | None = None,
    ) -> None:
        """Override the default limits of a resource, in bytes or items.

        Args:
            resource: ``memory``, ``gpu_memory``, ``bodies``, ``entities``, ``events``, ``buffer``,
            ``objects`` or
                ``object_size``.
            component: which one of them; any by default.
            warning: level for an alert of this severity.
            critical: likewise.
            emergency: likewise; at this level the cleanup is an emergency one.

        Raises:
            ValueError: for an unknown resource, no limit at all, or one that is not finite and above 0.

        """
        self._limits.add(
            resource, component, {"warning": warning, "critical": critical, "emergency": emergency}
        )

    def growth_limit(
        self,
        resource: str,
        component: str = "",
        *,
        per_minute: float | None = None,
        per_epoch: float | None = None,
        per_generation: float | None = None,
    ) -> None:
        """Override the default growth limits of a resource, in bytes or items.

        Raises:
            ValueError: as for ``limit``.

        """
        self._limits.add_growth(
            resource, component, {"minute": per_minute, "epoch": per_epoch, "generation": per_generation}
        )

    def on_cleanup(self, function: Function) -> Function:
        """Call ``function(action)`` in every cleanup, at a safe point of the trainer's own thread; a decorator.

        ``action`` is ``regular`` or ``emergency``. It may return ``{resource: how many were removed}``. What
        it raises is reported, and the other functions still run. Garbage collection, emptying the CUDA cache
        and trimming the allocator follow by themselves.

        Raises:
            ValueError: when it is not callable, or needs more than one argument.

        """
        self.cleanup_queue.add(function)
        return function

    def cleanup(self, action: str = "regular", reason: str = "") -> CleanupResult:
        """Clean up now: for a trainer's own schedule, called from its own thread between steps.

        Raises:
            ValueError: for an action other than ``regular`` and ``emergency``.

        """
        return self.cleanup_queue.run(action, reason, trigger="trainer")

    def serve(self, host: str, port: int, *, token: str | None, port_search: bool = False) -> None:
        """Start serving, and tell Prometheus where.

        Raises:
            OSError: when the port is taken (the message names its owner) or the host is not ours.

        """
        server = Server(
            host,
            port,
            exposition=self.exposition,
            cleanup_queue=self.cleanup_queue,
            status=Status(last_cleanup=lambda: self.cleanup_queue.last),
            token=token,
            port_search=port_search,
        )
        server.start()
        self.server = server
        self._safe_point.start()
        try:
            directory = discovery.targets_directory()
            discovery.sweep(directory)
            target = discovery.Target(directory, host, server.port)
            target.write()
            self._target = target
        except OSError as error:
            log.warning("Prometheus will not find this trainer by itself: %s", error)

    def stop(self) -> None:
        """Stop serving and sampling; ``step``, ``progress`` and ``phase`` stay harmless. Idempotent."""
        if self._target is not None:
            self._target.remove()
            self._target = None
        if self.server is not None:
            self.server.stop()
            self.server = None
        self._safe_point.stop()

    def abandon(self) -> None:
        """In a forked child: be inert. The server, the target and the safe points belong to the parent."""
        self._safe_point.abandon()
        self._memory.reopen()
        self.server = self._target = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _add(self, collector: Collector, *, anywhere: bool = False) -> None:
        self.exposition.add(collector)
        if isinstance(collector, Sampler):
            self._safe_point.add(collector, anywhere=anywhere)

    def _declare(self, kind: str, name: str) -> None:
        checked_name(kind, name)
        if (kind, name) in self._declared:
            raise ValueError(f"{kind} {name!r} is watched already: choose another name, or start() again")
        self._declared.add((kind, name))

    def _source(self, spec: Any) -> Source:
        return Source.of(spec, self._root_or_gone if self._root is not None else None)

    def _root_or_gone(self) -> Any:
        root = self.root
        if root is None:
            raise SourceGone("the root was freed")
        return root

    def _countable(self, kind: str, name: str, source: Any) -> Source:
        if not (is_accessor(source) or hasattr(type(source), "__len__")):
            raise ValueError(
                f"{kind} {name!r} needs a sized container, a function or an attribute path, got "
                f"{type(source).__name__}: a number would never change, give a function that returns it"
            )
        return self._source(source)

    def _levels(self) -> dict[str, Any]:
        """What a cleanup compares: read at once, in the trainer's thread."""
        watched = self._counting()
        self._safe_point.sample_now(*watched)
        readings = self._readings(watched)
        levels: dict[str, Any] = {"resident_memory_bytes": self._memory.read()}
        bodies = readings.by("trainer_bodies", "type")
        if bodies:
            levels["bodies"] = round(sum(bodies.values()))
        for key, (series, label) in _LEVELS.items():
            levels[key] = {name: round(value) for name, value in readings.by(series, label).items()}
        return levels

    def _counting(self) -> list[Any]:
        return [
            collector for collector in (self._bodies, self._entities, self._events) if collector is not None
        ]

    def _readings(self, collectors: Iterable[Collector]) -> Readings:
        return Readings(family for collector in collectors for family in self.exposition.read(collector))

    def _walker_readings(self) -> Readings:
        return self._readings(self._counting())


def _check_above_zero(what: str, value: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{what} must be a finite number above 0, got {value!r}")
