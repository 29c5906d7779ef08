"""What all adapters share: a watch for as long as a framework trains, its phases, the buffers it finds."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from heapwatch.collectors.phases import Phase
from heapwatch.integrations import sharing
from heapwatch.lifecycle import start
from heapwatch.measure.introspection.attributes import attributes_of
from heapwatch.measure.introspection.layout import layout_of
from heapwatch.measure.introspection.written import is_attribute_in_code
from heapwatch.measure.sizing.replay_buffers import contents_of
from heapwatch.runtime.failures import is_trainers
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("heapwatch")

_BUFFER_WORDS = ("buffer", "memory", "replay", "experience", "rollout", "trajector")
_MOST_BUFFERS = 8
# What torch keeps in every module under names like these: its registered tensors.
_TORCH_OWN = frozenset({"_buffers", "_non_persistent_buffers_set"})


class Options(TypedDict, total=False):
    """Arguments that an adapter hands on to `heapwatch.start`, which describes them.

    Attributes:
        name: the trainer's name; by default that of the environment or the framework. Sessions of one
            framework that share a process share a watch, and the options of the first count; another name
            asks for a watch of its own.
        port: where to serve.
        host: where to listen.
        token: what a request for a cleanup must bear.
        port_search: whether a port that is taken is passed over.
        run: label of `trainer_info`.
        profile: whose default limits apply.
        record: file for `heapwatch report`.
        interval: seconds between samples.
        budget: CPU seconds a second for all samples.

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
    """Starts a watch with a framework's training and stops it with it.

    Sessions of one framework in one process share their watch: the first starts it, the last stops it. A
    watch that is given is used and left running. Nothing that goes wrong in an adapter reaches training: it
    is logged once.

    Args:
        name: the trainer's name, unless the options hold one.
        framework: label of `trainer_info`.
        watch: one that runs already.
        options: for `heapwatch.start`.

    """

    def __init__(self, name: str, framework: str, watch: Watch | None, options: Options) -> None:
        self._name = name
        self._framework = framework
        self._options = options
        self._given = watch
        self._phase: Phase | None = None
        self._counted: dict[str, int] = {}
        self._logged: set[str] = set()
        self.watch = watch

    def begin(self) -> None:
        """Training starts."""
        if self.watch is None:
            try:
                self.watch = sharing.join(self, self._framework, self._options.get("name"), self._start)
            except OSError as error:
                _log_once(self._logged, error)

    def _start(self) -> Watch:
        options: dict[str, Any] = {"name": self._name, **self._options}
        return start(framework=self._framework, **options)

    def end(self) -> None:
        """Training is over."""
        self.phase(None)
        if self.watch is None:
            return
        sharing.declarations(self.watch).remove_worlds(self)
        if self._given is None:
            self.watch = None
            self._counted.clear()
            sharing.leave(self)

    def step(self) -> None:
        """One step is done."""
        if self.watch is not None:
            self.watch.step()

    def count(self, unit: str, total: int) -> None:
        """The framework says that `total` of `unit` are done by now."""
        ahead = total - self._counted.get(unit, 0)
        if self.watch is not None and ahead > 0:
            self.watch.progress(unit, ahead)
        self._counted[unit] = total

    def advance(self, unit: str, count: int) -> None:
        """`count` more of `unit` are done."""
        if self.watch is not None:
            self.watch.progress(unit, count)

    def start_at(self, unit: str, total: int) -> None:
        """What was done before this run: `total` of `unit` are no progress of it."""
        self._counted[unit] = total

    def phase(self, name: str | None) -> None:
        """The phase before ends; `name` begins unless it is None."""
        if self._phase is not None:
            self._phase.__exit__(None, None, None)
            self._phase = None
        if name is not None and self.watch is not None:
            self._phase = self.watch.phase(name).__enter__()

    def size(self, name: str, source: Callable[[], Any]) -> None:
        """Measure what `source` returns as `name`."""
        self._declare(
            lambda watch: sharing.declarations(watch).declare(self, "size", name, source, watch.size)
        )

    def buffer(self, name: str, source: Callable[[], Any]) -> None:
        """Measure the buffer that `source` returns as `name`."""
        self._declare(
            lambda watch: sharing.declarations(watch).declare(self, "buffer", name, source, watch.buffer)
        )

    def bodies(self, worlds: Callable[[], Any]) -> None:
        """Count the bodies of the Box2D world, or the list of worlds, that `worlds` returns."""
        self._declare(lambda watch: sharing.declarations(watch).add_worlds(watch, self, worlds))

    def find_buffers(self, owner: Any) -> None:
        """Measure the attributes of `owner` that are buffers by their names and by what they hold."""
        for name in buffers_of(owner):
            self.buffer(name, accessor(owner, name))

    def _declare(self, declaration: Callable[[Watch], None]) -> None:
        if self.watch is None:
            return
        try:
            declaration(self.watch)
        except ValueError as error:
            _log_once(sharing.declarations(self.watch).logged, error)


def _log_once(logged: set[str], error: Exception) -> None:
    if str(error) not in logged:
        logged.add(str(error))
        log.warning("%s; training goes on", error)


def new_session(name: str, framework: str, watch: Watch | None, /, **options: Unpack[Options]) -> Session:
    """A session of `framework`, for an adapter's constructor."""
    return Session(name, framework, watch, options)


def accessor(owner: Any, name: str) -> Callable[[], Any]:
    """Reads attribute `name` of `owner`, which is held weakly; None once it is gone."""
    reference = weakref.ref(owner)
    return lambda: getattr(reference(), name, None)


def buffers_of(owner: Any) -> list[str]:
    """Names of the attributes of `owner` that look like buffers and can be measured."""
    found = []
    for name, value in list((attributes_of(owner) or {}).items()):
        if name.startswith("__") or name in _TORCH_OWN:
            continue
        if not is_attribute_in_code(name, layout_of(type(owner))):
            continue  # the name may be what the program works on
        if any(word in name.lower() for word in _BUFFER_WORDS):
            try:
                contents_of(value)
            except BaseException as error:
                if is_trainers(error):
                    raise
                continue
            found.append(name)
    return found[:_MOST_BUFFERS]
