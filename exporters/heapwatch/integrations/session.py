"""What all adapters share: a watch for as long as a framework trains, its phases, the buffers it finds."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from heapwatch.collectors.phases import Phase
from heapwatch.lifecycle import start
from heapwatch.measure.buffers import contents_of
from heapwatch.runtime.failures import is_trainers
from heapwatch.watch import Watch

if TYPE_CHECKING:
    from typing_extensions import Unpack

log = logging.getLogger("heapwatch")

_BUFFER_WORDS = ("buffer", "memory", "replay", "experience", "rollout", "trajector")
_MOST_BUFFERS = 8


class Options(TypedDict, total=False):
    """Arguments that an adapter hands on to `heapwatch.start`."""

    port: int
    host: str
    token: str
    port_search: bool
    run: str
    profile: str
    interval: float
    budget: float


class Session:
    """Starts a watch with a framework's training and stops it with it.

    A watch that is given is used and left running. Nothing that goes wrong in an adapter reaches training:
    it is logged once.

    Args:
        name: the trainer's name.
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
        self._told: set[str] = set()
        self.watch = watch

    def begin(self) -> None:
        """Training starts."""
        if self.watch is None:
            try:
                self.watch = start(self._name, framework=self._framework, **self._options)
            except OSError as error:
                self._tell("start", error)

    def end(self) -> None:
        """Training is over."""
        self.phase(None)
        if self.watch is not None and self._given is None:
            self.watch.stop()
            self.watch = None
            self._counted.clear()

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
        self._declare(lambda watch: watch.size(name, source))

    def buffer(self, name: str, source: Callable[[], Any]) -> None:
        """Measure the buffer that `source` returns as `name`."""
        self._declare(lambda watch: watch.buffer(name, source))

    def bodies(self, world: Callable[[], Any]) -> None:
        """Count the bodies of the Box2D world that `world` returns."""
        self._declare(lambda watch: watch.bodies(world))

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
            self._tell(str(error), error)

    def _tell(self, key: str, error: Exception) -> None:
        if key not in self._told:
            self._told.add(key)
            log.warning("%s; training goes on", error)


def new_session(name: str, framework: str, watch: Watch | None, **options: Unpack[Options]) -> Session:
    """A session of `framework`, for an adapter's constructor."""
    return Session(name, framework, watch, options)


def accessor(owner: Any, name: str) -> Callable[[], Any]:
    """Reads attribute `name` of `owner`, which is held weakly; None once it is gone."""
    reference = weakref.ref(owner)
    return lambda: getattr(reference(), name, None)


def buffers_of(owner: Any) -> list[str]:
    """Names of the attributes of `owner` that look like buffers and can be measured."""
    attributes: Mapping[str, Any] = getattr(owner, "__dict__", {})
    found = []
    for name, value in attributes.items():
        if any(word in name.lower() for word in _BUFFER_WORDS) and not name.startswith("__"):
            try:
                contents_of(value)
            except BaseException as error:
                if is_trainers(error):
                    raise
                continue
            found.append(name)
    return found[:_MOST_BUFFERS]
