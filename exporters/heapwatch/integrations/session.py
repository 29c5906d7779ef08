"""Shared code of all adapters: they start and stop a watch, report progress, and measure objects.

All sessions of a framework in a process share one watch. The latest declaration of a name applies.
`LightningHooks` is the callback of both Lightning packages.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from heapwatch.collectors.progress import Phase
from heapwatch.lifecycle import start
from heapwatch.runtime.environment import say_once
from heapwatch.runtime.sources import Source
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

Read = Callable[[], Any]


class Options(TypedDict, total=False):
    """Arguments that an adapter passes to `heapwatch.start`, which describes them.

    By default, the name is that of the framework, or of the Gymnasium environment. Sessions of one
    framework in one process share a watch, with the options of the first. Another name has its own watch.
    """

    name: str
    port: int
    host: str
    token: str
    port_search: bool
    run: str
    profile: str
    record: str | Path
    interval: float
    budget: float


class Session:
    """Starts a watch when a framework begins to train, and stops it when training ends.

    Sessions of one framework in one process share their watch: the first starts it, the last stops it. A
    given watch is used and not stopped. Errors in an adapter are logged once and do not reach training.

    Args:
        name: the trainer's name, unless the options have one.
        framework: label of `trainer_info`.
        watch: a running watch.
        options: for `heapwatch.start`.

    """

    def __init__(self, name: str, framework: str, watch: Watch | None, /, **options: Unpack[Options]) -> None:
        self._name = name
        self._framework = framework
        self._options = options
        self._given_watch = watch
        self._phase: Phase | None = None
        self._totals: dict[str, int] = {}
        self.watch = watch

    def begin(self) -> None:
        """Start a watch, or use the one of the framework's other sessions."""
        if self.watch is not None:
            return
        key = self._framework, self._options.get("name")
        options: dict[str, Any] = {"name": self._name, **self._options}
        try:
            with _lock:
                watch = _started.get(key)
                # A watch of the same name that was started elsewhere has stopped ours.
                if watch is None or not watch.exporter.is_running:
                    watch = _started[key] = start(framework=self._framework, **options)
                _shared_of(watch).members.add(self)
                self.watch = watch
        except OSError as error:
            say_once(f"{error}; training continues")

    def end(self) -> None:
        """Stop the watch, unless it was given or another session uses it."""
        self.phase(None)
        watch = self.watch
        if watch is None:
            return
        with _lock:
            shared = _shared_of(watch)
            shared.worlds.pop(self, None)
            if self._given_watch is not None:
                return
            self.watch = None
            self._totals.clear()
            shared.members.discard(self)
            if not shared.members:
                _started.pop((self._framework, self._options.get("name")), None)
                watch.stop()

    def step(self) -> None:
        """Count a step."""
        if self.watch is not None:
            self.watch.step()

    def count(self, unit: str, total: int) -> None:
        """Set the count of `unit` to `total`, as the framework reports it."""
        ahead = total - self._totals.get(unit, 0)
        if self.watch is not None and ahead > 0:
            self.watch.progress(unit, ahead)
        self._totals[unit] = total

    def advance(self, unit: str, count: int) -> None:
        """Count `count` more of `unit`."""
        if self.watch is not None:
            self.watch.progress(unit, count)

    def start_at(self, unit: str, total: int) -> None:
        """Start counting `unit` at `total`, which was done before this run."""
        self._totals[unit] = total

    def phase(self, name: str | None) -> None:
        """End the current phase, and begin `name` unless it is None."""
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
        if name is not None and self.watch is not None:
            self._phase = self.watch.phase(name).__enter__()

    def size(self, name: str, source: Read) -> None:
        """Measure, under `name`, the object that `source` returns."""
        self._declare("size", name, source)

    def state_of(self, name: str, owner: Any) -> None:
        """Measure the state dictionary of `owner` as `name.state_dict`, if it has one."""
        state_dict = getattr(owner, "state_dict", None)
        if state_dict is not None:
            self.size(f"{name}.state_dict", state_dict)

    def buffer(self, name: str, source: Read) -> None:
        """Measure, under `name`, the buffer that `source` returns."""
        self._declare("buffer", name, source)

    def bodies(self, worlds: Read) -> None:
        """Count the bodies of the Box2D world, or the list of worlds, that `worlds` returns.

        The worlds of all sessions of a watch are counted together.
        """
        if self.watch is None:
            return
        shared = _shared_of(self.watch)
        try:
            if not shared.counts_worlds:
                self.watch.bodies(shared.all_worlds)
                shared.counts_worlds = True
            shared.worlds[self] = worlds
        except ValueError as error:  # the program has declared bodies itself
            say_once(f"{error}; training continues")

    def _declare(self, kind: str, name: str, read: Read) -> None:
        """Declare `name`. If another session has declared it, this session's source replaces that one."""
        if self.watch is None:
            return
        key, sources = (kind, name), _shared_of(self.watch).sources
        try:
            if key not in sources:
                declare = self.watch.buffer if kind == "buffer" else self.watch.size
                declare(name, lambda: sources[key].read())
            sources[key] = Source.of(read)
        except ValueError as error:  # the program uses the name
            say_once(f"{error}; training continues")


class _Shared:
    """State that the sessions of one watch share. It keeps neither a session nor the watch alive.

    Attributes:
        members: the sessions that use the watch.
        sources: what they have declared, by kind and name.
        worlds: functions that return a session's Box2D world, or a list of worlds.
        counts_worlds: whether the watch counts their bodies.

    """

    def __init__(self) -> None:
        self.members: weakref.WeakSet[Session] = weakref.WeakSet()
        self.sources: dict[tuple[str, str], Source] = {}
        self.worlds: weakref.WeakKeyDictionary[Session, Read] = weakref.WeakKeyDictionary()
        self.counts_worlds = False

    def all_worlds(self) -> list[Any]:
        """The worlds of all sessions that still exist."""
        all_worlds: list[Any] = []
        for read in list(self.worlds.values()):
            read_worlds = read()
            all_worlds += read_worlds if isinstance(read_worlds, list) else [read_worlds]
        return [world for world in all_worlds if world is not None]


_lock = threading.RLock()
# Watches that sessions started, by framework and the name asked for.
_started: dict[tuple[str, str | None], Watch] = {}
_shared: weakref.WeakKeyDictionary[Watch, _Shared] = weakref.WeakKeyDictionary()


def _shared_of(watch: Watch) -> _Shared:
    with _lock:
        return _shared.setdefault(watch, _Shared())


def _forget_all() -> None:
    global _lock
    _lock = threading.RLock()
    _started.clear()


os.register_at_fork(after_in_child=_forget_all)


class Adapter:
    """Base class of the adapters: it has the session.

    Args:
        watch: a running watch; by default one is started with training and stopped with it.
        options: `name=` (by default that of the framework), `record=`, `port=` and the others of
            `heapwatch.integrations.session.Options`.

    """

    _framework: ClassVar[str]

    def __init__(self, watch: Watch | None = None, **options: Unpack[Options]) -> None:
        super().__init__()
        self._session = Session(self._framework, self._framework, watch, **options)

    @property
    def watch(self) -> Watch | None:
        """The watch. Unless one was given, it is None before training begins and after it has ended."""
        return self._session.watch


class LightningHooks(Adapter):
    """Watches `fit`: the module, its optimizers, steps and epochs, training and validation.

    Its arguments are those of `Adapter`.
    """

    _framework = "lightning"

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start the watch, and measure the module."""
        session = self._session
        session.begin()
        session.state_of("module", pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure the optimizers, which exist now."""
        for index, optimizer in enumerate(trainer.optimizers):
            self._session.state_of(f"optimizer{index or ''}", optimizer)
        self._session.start_at("step", trainer.global_step)
        self._session.start_at("epoch", trainer.current_epoch)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """The phase `train` begins."""
        self._session.phase("train")

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count a step."""
        self._session.count("step", trainer.global_step)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """The phase `validate` begins."""
        self._session.phase("validate")

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """The phase `train` continues."""
        self._session.phase("train")

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count an epoch."""
        self._session.phase(None)
        self._session.count("epoch", trainer.current_epoch + 1)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:
        """Stop watching."""
        self._session.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Stop watching a run that failed."""
        self._session.end()


def accessor(owner: Any, name: str) -> Callable[[], Any]:
    """A function that reads attribute `name` of `owner`, held weakly; it returns None once that is freed."""
    reference = weakref.ref(owner)
    return lambda: getattr(reference(), name, None)
