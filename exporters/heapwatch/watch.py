"""The interface of a trainer: its declarations and calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heapwatch.collectors.bodies import BodyCollector
from heapwatch.collectors.buffers import BufferSources
from heapwatch.explain.findings import headline
from heapwatch.exporter import Exporter, Settings
from heapwatch.measure.introspection.roots import Root
from heapwatch.runtime.cleanup import CleanupRequest
from heapwatch.runtime.labels import checked_name, is_whole
from heapwatch.runtime.sources import Source, SourceGone, is_accessor

if TYPE_CHECKING:
    from typing_extensions import Self

    from heapwatch.collectors.progress import Phase
    from heapwatch.http.server import Server
    from heapwatch.measure.objects.tracked import Large
    from heapwatch.recording.checkpoints import Checkpoint, CheckpointGrowth
    from heapwatch.runtime.cleanup import CleanupResult

Function = TypeVar("Function", bound=Callable[..., Any])


class Watch:
    """A trainer's exporter. `heapwatch.start` makes one and serves it.

    Declarations (`bodies`, `entities`, `events`, `buffer`, `objects`, `expect`, `size`, `limit`,
    `growth_limit`, `on_cleanup`) raise `ValueError` for invalid arguments. The methods called during
    training (`step`, `progress`, `phase`, `checkpoint`) never raise: errors are counted in
    `trainer_exporter_collect_errors_total` and logged once.

    A source is an object (referenced weakly if its type allows), a function without arguments, or an
    attribute path from `root`; it is resolved on each read.

    Args:
        name: the trainer's name.
        options: those of `heapwatch.exporter.Settings`.

    Attributes:
        exporter: the parts of this watch, for the other modules of this package.

    """

    def __init__(self, name: str = "trainer", **options: Any) -> None:
        self.name = name
        self.exporter = Exporter(Settings(name, **options))
        self._safe_point = self.exporter.safe_point
        self._root: Callable[[], Any] | None = None
        self._declared: set[tuple[str, str]] = set()

    @property
    def root(self) -> Any:
        """Where attribute paths start, referenced weakly if its type allows; None when unset or freed."""
        try:
            return self._root() if self._root is not None else None
        except SourceGone:
            return None

    @root.setter
    def root(self, trainer: Any) -> None:
        self._root = read = Source.of(trainer).read
        self.exporter.roots = [Root("root", "watch.root", read)]

    @property
    def port(self) -> int | None:
        """The port that is served; None before `start` and after `stop`."""
        return None if self.server is None else self.server.port

    @property
    def server(self) -> Server | None:
        """The HTTP server; None before `start` and after `stop`."""
        return self.exporter.server

    def step(self) -> None:
        """Count one training step. A safe point; costs an addition and a check of a flag."""
        point = self._safe_point
        point.steps += 1
        if point.due:
            point.visit(stepping=True)

    def progress(self, unit: str, count: int = 1) -> None:
        """Count more of `unit`: `episode`, `epoch`, `generation`, or `step` for several at once."""
        self.exporter.progress.advance(unit, count)
        if unit == "step" and self._safe_point.due:
            self._safe_point.visit(stepping=True)

    def phase(self, name: str) -> Phase:
        """A phase of the training cycle, as a context manager or a decorator. Its end is a safe point."""
        return self.exporter.phases.phase(name)

    def checkpoint(self, label: str) -> Checkpoint | None:
        """Record memory and live objects at a named point, such as `after_evaluation`; also a safe point.

        The watched classes are counted at that moment, in the calling thread, if that takes at most 0.2
        seconds of CPU time: a checkpoint is for the end of a phase, not of a step. A class for which there is
        not enough time keeps its last count, and the checkpoint says how old that is. A line of the log shows
        the change since the previous checkpoint, since the last one of this label and since the first.
        Returns None if memory could not be read.
        """
        return self.exporter.checkpoint(label)

    @property
    def checkpoints(self) -> tuple[Checkpoint, ...]:
        """The first checkpoint and the newest thousand."""
        return self.exporter.checkpoints.all()

    def growth_since(self, label: str | None = None) -> CheckpointGrowth:
        """The change from the first checkpoint of this label, by default of all, to the newest.

        It has `bytes`, and `objects` by class; `str` gives a few lines of text.

        Raises:
            ValueError: there is no such checkpoint.

        """
        return self.exporter.checkpoints.growth_since(label)

    def claim(self) -> None:
        """Make the calling thread the training thread, whose steps are safe points.

        By default it is the first thread that steps.
        """
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
            world: a Box2D world, an accessor of one or several, or an accessor of `{type: count}`.
            classify: returns a body's type, or None to apply the rule below.
            owners: accessor of groups of owned bodies, one group an agent, its main body first; or of
                `{type: bodies}`. A static body is `static`, a group's first `agent`, its others
                `dynamic`, and a moving body without an owner is `unknown`.

        Raises:
            ValueError: bodies are watched already, or an argument is of another type.

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
        exporter = self.exporter
        exporter.count_bodies(BodyCollector(source, classify, owned, exporter.failures, exporter.interval))

    def entities(self, name: str, source: Any) -> None:
        """Count things of the environment.

        Args:
            name: their type, such as `food_sources`.
            source: a sized container, or an accessor of one or of a number.

        Raises:
            ValueError: an invalid or duplicate name, or a source of another type.

        """
        counted = self._countable("entities", name, source)
        self._declare("entities", name)
        self.exporter.entities.count(name, counted)
        self._safe_point.schedule(self.exporter.entities)

    def events(self, name: str, source: Any, capacity: int | None = None) -> None:
        """Count the items of an event list.

        Args:
            name: the list's name, such as `death`.
            source: a sized container, or an accessor of one or of a number.
            capacity: the most items that it should hold; by default its `maxlen`.

        Raises:
            ValueError: an invalid or duplicate name, a source of another type, or a capacity below 1.

        """
        if capacity is not None and not is_whole(capacity, below=2**63):
            raise ValueError(
                f"the capacity of events {name!r} must be a whole number above 0, got {capacity!r}"
            )
        counted = self._countable("events", name, source)
        self._declare("events", name)
        self.exporter.events.count(name, counted, capacity)
        self._safe_point.schedule(self.exporter.events)

    def buffer(
        self, name: str, source: Any = None, *, items: Any = None, capacity: Any = None, nbytes: Any = None
    ) -> None:
        """Measure a replay buffer: items, bytes, and both when full.

        Args:
            name: the buffer's name, such as `replay`.
            source: a deque, a list, a buffer of Stable-Baselines3 or TorchRL, anything with items inside.
            items: returns how many items are stored, where they cannot be counted.
            capacity: how many items it may hold: a number, or a function that returns it.
            nbytes: returns the bytes stored, where they cannot be measured.

        Raises:
            ValueError: an invalid or duplicate name, or neither a source nor the functions.

        """
        if source is None and items is None and nbytes is None:
            raise ValueError(f"buffer {name!r} needs the buffer, or the functions items= and nbytes=")
        sources = BufferSources(
            container=None if source is None else self._source(source),
            items=self._figure(name, items),
            capacity=self._figure(name, capacity),
            nbytes=self._figure(name, nbytes),
        )
        self._declare("buffer", name)
        self.exporter.buffers.measure(name, sources)
        self._safe_point.schedule(self.exporter.buffers, self.exporter.buffers.sizes)

    def objects(self, *classes: type) -> None:
        """Count live instances of `classes`, subclasses included.

        A count stops the program for about a third of a second for a million objects; for one to two seconds
        if the collector does not track a class, such as `numpy.ndarray`. It is made as rarely as the budget
        asks for, and at each checkpoint as far as 0.2 seconds of CPU time suffice.

        Raises:
            ValueError: something is not a class.

        """
        self.exporter.objects.count(*classes)
        self._safe_point.schedule(*self.exporter.objects.samplers)

    def expect(self, cls: type, count: int) -> None:
        """Count live instances of `cls`, and warn when there are more than `count`.

        The count that finds them logs a warning. The limit of `objects` is set to `count` + 1, so that an
        alert follows.

        Raises:
            ValueError: `cls` is no class, or `count` no whole number of at least 0.

        """
        if not is_whole(count, least=0, below=2**53):
            raise ValueError(f"expect takes how many may be alive, 0 or more, got {count!r}")
        name = self.exporter.objects.expect(cls, count)
        self._safe_point.schedule(*self.exporter.objects.samplers)
        self.exporter.limits.set_limits("objects", name, {"warning": count + 1})

    def size(self, name: str, source: Any) -> None:
        """Measure the deep size of an object.

        Args:
            name: what it is called, such as `policy.state_dict`.
            source: the object, or an accessor of it.

        Raises:
            ValueError: an invalid or duplicate name.

        """
        measured = self._source(source)
        self._declare("size", name)
        self.exporter.sizes.measure(name, measured)
        self._safe_point.schedule(self.exporter.sizes)

    def size_interval(self, interval: int, unit: str = "epoch") -> None:
        """Measure named objects after every `interval` epochs or other units, besides the samples by time.

        Raises:
            ValueError: the interval is not a whole number above 0, or a bad unit.

        """
        if not is_whole(interval):
            raise ValueError(f"size_interval must be a whole number above 0, got {interval!r}")
        self.exporter.sample_sizes_every(interval, checked_name("unit", unit))

    def large_objects(self, nbytes: float = 10e6, most: int = 20) -> list[Large]:
        """The `most` largest single objects of the program, of at least `nbytes` bytes, whatever holds them.

        Training stops meanwhile, for about a second per million objects. `heapwatch report` of the recorded
        run lists the result of the last call.
        """
        from heapwatch.measure.objects.tracked import large_objects

        objects = large_objects(nbytes, most)
        self.exporter.record_large(objects)
        return objects

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
            resource: `memory`, `gpu_memory`, `bodies`, `entities`, `events`, `buffer`, `objects` or
                `object_size`.
            component: which one of them; any by default.
            warning: level for an alert of this severity.
            critical: the same for `critical`.
            emergency: the same; at this level the cleanup is an emergency cleanup.

        Raises:
            ValueError: for an unknown resource, no limit at all, or one that is not finite and above 0.

        """
        self.exporter.limits.set_limits(
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
        per_episode: float | None = None,
    ) -> None:
        """Override the default growth limits of a resource, in bytes or items.

        Raises:
            ValueError: as for `limit`.

        """
        self.exporter.limits.set_growth_limits(
            resource,
            component,
            {
                "minute": per_minute,
                "epoch": per_epoch,
                "generation": per_generation,
                "episode": per_episode,
            },
        )

    def record(self, path: str | Path) -> Path:
        """Record the run to a file for `heapwatch report`.

        One line at the end of each phase and cycle, or every 15 seconds, from a separate thread; the longer
        the run, the fewer of its cycles. An existing file is kept as `PATH.1`. If it is called after the
        declarations, the record begins with their levels.

        Raises:
            OSError: the file cannot be written.

        """
        from heapwatch.recording.file import Recorder

        explanation = self.exporter.explanation
        recorder = Recorder(Path(path), {"trainer": self.name}, explain=lambda: explanation().as_json())
        self.exporter.add_sink(recorder)
        return recorder.path

    def memory_report_interval(self, interval: int, unit: str = "epoch", *, trend: bool = False) -> None:
        """Log a memory report every `interval` epochs, or other units, at level INFO; leaks in it at WARNING.

        With `trend` the trend across the cycles so far and the analysis of the growth follow. While reports
        take more than a fifth of the time, some are left out.

        Raises:
            ValueError: the interval is not a whole number above 0, or the unit is unknown.

        """
        from heapwatch.report.interval import MemoryReport  # reports are loaded by those who ask for one

        report = MemoryReport(
            self.name, interval, unit, lambda: self.exporter.explanation().as_json(), trend=trend
        )
        self.exporter.add_sink(report, report.is_due)
        self.exporter.reported_leak = lambda: report.leak

    def on_cleanup(self, function: Function) -> Function:
        """Call `function(action)` in every cleanup, at a safe point in the trainer's thread; a decorator.

        `action` is `regular` or `emergency`. A function with a parameter `target` also gets the target of the
        cleanup: `target.resource` and `target.component` of the alert, "" if none was named. It may return
        `{resource: how many were removed}`. An exception is reported, and the other functions still run.
        Garbage collection, emptying the CUDA cache and trimming the allocator follow automatically.

        Raises:
            ValueError: it is not callable, or needs further arguments.

        """
        self.exporter.cleanup_queue.register(function)
        return function

    def cleanup(self, action: str = "regular", reason: str = "") -> CleanupResult:
        """Clean up now, for a trainer's own schedule. Call it in the training thread, between steps.

        Raises:
            ValueError: for an action other than `regular` and `emergency`.

        """
        return self.exporter.cleanup_queue.run(CleanupRequest(action, reason, "trainer"))

    def __repr__(self) -> str:
        """Where it serves and what grows, in a line."""
        server = self.server
        where = f"{self.name} at {server.url}" if server else f"{self.name} is not served"
        return f"{where}: {headline(self.exporter.explanation())}"

    def stop(self) -> None:
        """Stop serving and sampling. `step`, `progress` and `phase` may still be called. Idempotent."""
        self.exporter.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

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

    def _figure(self, name: str, spec: Any) -> Source | None:
        if spec is None:
            return None
        if isinstance(spec, (int, float)) and not isinstance(spec, bool) and 0 <= spec <= sys.float_info.max:
            return Source.constant(spec)
        if not is_accessor(spec):
            raise ValueError(f"buffer {name!r}: items, capacity and nbytes must be functions, got {spec!r}")
        return self._source(spec)
