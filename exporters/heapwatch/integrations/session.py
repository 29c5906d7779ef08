"""Shared code of all adapters: a watch while a framework trains, its phases, and its buffers.

All sessions of a framework in a process share one watch. The latest declaration of a name applies.
`LightningHooks` is the callback of both Lightning packages.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from heapwatch.collectors.progress import Phase
from heapwatch.lifecycle import start
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.sizing.replay_buffers import contents_of
from heapwatch.runtime.environment import say_once
from heapwatch.runtime.failures import is_trainers
from heapwatch.runtime.sources import Source
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

Read = Callable[[], Any]

_BUFFER_WORDS = ("buffer", "memory", "replay", "experience", "rollout", "trajector")
_MOST_BUFFERS = 8
# What torch keeps in every module under names like these: its registered tensors.
_TORCH_OWN = frozenset({"_buffers", "_non_persistent_buffers_set"})


class Options(TypedDict, total=False):
    """Arguments that an adapter passes to `heapwatch.start`, which describes them.

    The name is by default that of the environment or the framework. Sessions of one framework that share a
    process share a watch, and the options of the first apply. Another name starts a separate watch.
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
        self._given = watch
        self._phase: Phase | None = None
        self._counted: dict[str, int] = {}
        self.watch = watch

    def begin(self) -> None:
        """Training begins: start the watch."""
        if self.watch is None:
            try:
                self.watch = _join(self, self._framework, self._options.get("name"), self._start)
            except OSError as error:
                say_once(f"{error}; training continues")

    def _start(self) -> Watch:
        options: dict[str, Any] = {"name": self._name, **self._options}
        return start(framework=self._framework, **options)

    def end(self) -> None:
        """Training has ended: stop the watch."""
        self.phase(None)
        if self.watch is None:
            return
        _declarations_of(self.watch).remove_worlds(self)
        if self._given is None:
            self.watch = None
            self._counted.clear()
            _leave(self)

    def step(self) -> None:
        """Count a step."""
        if self.watch is not None:
            self.watch.step()

    def count(self, unit: str, total: int) -> None:
        """Set the count of `unit` to `total`, as the framework reports it."""
        ahead = total - self._counted.get(unit, 0)
        if self.watch is not None and ahead > 0:
            self.watch.progress(unit, ahead)
        self._counted[unit] = total

    def advance(self, unit: str, count: int) -> None:
        """Count `count` more of `unit`."""
        if self.watch is not None:
            self.watch.progress(unit, count)

    def start_at(self, unit: str, total: int) -> None:
        """Set what was done before this run: `total` of `unit` do not count as its progress."""
        self._counted[unit] = total

    def phase(self, name: str | None) -> None:
        """End the current phase, and begin `name` unless it is None."""
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
        if name is not None and self.watch is not None:
            self._phase = self.watch.phase(name).__enter__()

    def size(self, name: str, source: Callable[[], Any]) -> None:
        """Measure what `source` returns as `name`."""
        self._declare(lambda known, watch: known.declare("size", name, source, watch.size))

    def state_of(self, name: str, owner: Any) -> None:
        """Measure the state dictionary of `owner` as `name.state_dict`, if it has one."""
        state_dict = getattr(owner, "state_dict", None)
        if state_dict is not None:
            self.size(f"{name}.state_dict", state_dict)

    def buffer(self, name: str, source: Callable[[], Any]) -> None:
        """Measure the buffer that `source` returns as `name`."""
        self._declare(lambda known, watch: known.declare("buffer", name, source, watch.buffer))

    def bodies(self, worlds: Callable[[], Any]) -> None:
        """Count the bodies of the Box2D world, or the list of worlds, that `worlds` returns."""
        self._declare(lambda known, watch: known.add_worlds(watch, self, worlds))

    def find_buffers(self, owner: Any) -> None:
        """Measure the attributes of `owner` that are buffers by their names and by what they hold."""
        for name in buffers_of(owner):
            self.buffer(name, accessor(owner, name))

    def _declare(self, declare: Callable[[_Declarations, Watch], None]) -> None:
        if self.watch is None:
            return
        declarations = _declarations_of(self.watch)
        try:
            declare(declarations, self.watch)
        except ValueError as error:
            say_once(f"{error}; training continues")


class Adapter:
    """Part of each adapter: its session, and the watch of that.

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
        """The watch; None before training begins and after it has ended."""
        return self._session.watch


class LightningHooks(Adapter):
    """Watches `fit`: the module, its optimizers and buffers, steps and epochs, training and validation.

    Its arguments are those of `Adapter`.
    """

    _framework = "lightning"

    def on_fit_start(self, trainer: Any, pl_module: Any) -> None:
        """Start watching what the module keeps."""
        session = self._session
        session.begin()
        session.state_of("module", pl_module)
        session.find_buffers(pl_module)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure the optimizers, which exist now."""
        for index, optimizer in enumerate(trainer.optimizers):
            self._session.state_of(f"optimizer{index or ''}", optimizer)
        self._session.start_at("step", trainer.global_step)

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


def buffers_of(owner: Any) -> list[str]:
    """Names of the attributes of `owner` that look like buffers and can be measured."""
    names = []
    for name, value in list((attributes_of(owner) or {}).items()):
        if name.startswith("__") or name in _TORCH_OWN:
            continue
        if any(word in name.lower() for word in _BUFFER_WORDS):
            try:
                contents_of(value)
            except BaseException as error:
                if is_trainers(error):
                    raise
                continue
            names.append(name)
    return names[:_MOST_BUFFERS]


_lock = threading.RLock()
# Watches that sessions started, and the sessions that use each; by framework, and the name asked for.
_started: dict[tuple[str, str | None], tuple[Watch, weakref.WeakSet[Any]]] = {}


def _join(member: object, framework: str, name: str | None, start: Callable[[], Watch]) -> Watch:
    """The watch of the framework's other sessions with this name, or without one; `start` makes the first.

    It is stopped when its last session leaves.
    """
    with _lock:
        watch, members = _started.get((framework, name), (None, None))
        # A watch of the same name that was started elsewhere has stopped ours.
        if watch is None or members is None or not watch.exporter.is_running:
            watch, members = _started[framework, name] = start(), weakref.WeakSet()
        members.add(member)
        return watch


def _leave(member: object) -> None:
    """The session has ended: its watch is stopped if no other session uses it."""
    with _lock:
        for key, (watch, members) in list(_started.items()):
            if member in members:
                members.discard(member)
                if not members:
                    del _started[key]
                    watch.stop()


class _Declarations:
    """What the sessions of one watch have declared on it. Neither a session nor a watch is kept alive."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, str], Source] = {}
        self._worlds: weakref.WeakKeyDictionary[Any, Read] = weakref.WeakKeyDictionary()
        self._bodies_declared = False

    def declare(self, kind: str, name: str, read: Read, declare: Callable[[str, Read], None]) -> None:
        """Declare `name`; if another session has, what this one reads takes its place.

        Raises:
            ValueError: the name cannot be declared.

        """
        key = kind, name
        if key not in self._sources:
            declare(name, partial(self._read, key))
        self._sources[key] = Source.of(read)

    def _read(self, key: tuple[str, str]) -> Any:
        return self._sources[key].read()

    def add_worlds(self, watch: Watch, member: object, read: Read) -> None:
        """Count the bodies of the world, or the worlds, that `read` returns, with those of other sessions.

        Raises:
            ValueError: the bodies of this watch were declared by the program.

        """
        if not self._bodies_declared:
            watch.bodies(self._all_worlds)
            self._bodies_declared = True
        self._worlds[member] = read

    def remove_worlds(self, member: object) -> None:
        """The session has ended."""
        self._worlds.pop(member, None)

    def _all_worlds(self) -> list[Any]:
        all_worlds: list[Any] = []
        for read in list(self._worlds.values()):
            read_worlds = read()
            all_worlds += read_worlds if isinstance(read_worlds, list) else [read_worlds]
        return [world for world in all_worlds if world is not None]


_declarations: weakref.WeakKeyDictionary[Watch, _Declarations] = weakref.WeakKeyDictionary()


def _declarations_of(watch: Watch) -> _Declarations:
    """What sessions have declared on `watch`."""
    with _lock:
        return _declarations.setdefault(watch, _Declarations())


def _forget_all() -> None:
    global _lock
    _lock = threading.RLock()
    _started.clear()


os.register_at_fork(after_in_child=_forget_all)
