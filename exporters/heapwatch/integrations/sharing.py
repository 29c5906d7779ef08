"""One watch for all sessions of a framework in a process, and the names that they declare on it."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from heapwatch.runtime.sources import Source
from heapwatch.watch import Watch

Read = Callable[[], Any]

# Objects of one name that are distinguished on one watch: the buffers of the first eight environments.
_MOST_OF_A_NAME = 8


class _Started:
    """A watch that a session started, and the sessions that use it. A session is held weakly."""

    def __init__(self, watch: Watch, named: bool) -> None:
        self.watch = watch
        self.named = named
        self.members: weakref.WeakSet[Any] = weakref.WeakSet()


_lock = threading.RLock()
_started: dict[str, list[_Started]] = {}


def join(member: object, framework: str, name: str | None, start: Callable[[], Watch]) -> Watch:
    """Return the watch of the framework's other sessions; `start` makes it for the first of them.

    Args:
        member: the session. The watch is stopped when its last session leaves.
        framework: only sessions of the same framework share a watch.
        name: asks for a watch of this name; None for the one that no session named.
        start: makes the watch. What it raises is raised.

    """
    with _lock:
        running = _started.setdefault(framework, [])
        # One with the same name that was started elsewhere has stopped ours.
        running[:] = [one for one in running if one.watch._exporter.is_running]
        for one in running:
            if one.watch.name == name if name is not None else not one.named:
                break
        else:
            one = _Started(start(), name is not None)
            running.append(one)
        one.members.add(member)
        return one.watch


def leave(member: object) -> None:
    """The session has ended: its watch is stopped if no other session uses it."""
    with _lock:
        for running in _started.values():
            for one in [one for one in running if member in one.members]:
                one.members.discard(member)
                if not one.members:
                    running.remove(one)
                    one.watch.stop()


class _Place:
    """A declared name, whose object is replaced when a later session declares it."""

    def __init__(self, member: object, read: Read) -> None:
        self.take(member, read)

    def take(self, member: object, read: Read) -> None:
        self.member = weakref.ref(member)
        self._source = Source.of(read)

    def read(self) -> Any:
        return self._source.read()


class Declarations:
    """What the sessions of one watch have declared on it. Neither a session nor a watch is kept alive.

    Attributes:
        logged: the errors that were logged.

    """

    def __init__(self) -> None:
        self.logged: set[str] = set()
        self._places: dict[tuple[str, str], _Place] = {}
        self._worlds: weakref.WeakKeyDictionary[Any, Read] = weakref.WeakKeyDictionary()
        self._bodies_declared = False

    def declare(
        self, member: Any, kind: str, name: str, read: Read, declare: Callable[[str, Read], None]
    ) -> None:
        """Declare `name`, or `name_2` and so on where another session of this watch uses the name.

        A name that this session or one that has ended declared is taken over.

        Raises:
            ValueError: the name cannot be declared, or is used by too many sessions.

        """
        for number in range(1, _MOST_OF_A_NAME + 1):
            label = name if number == 1 else f"{name}_{number}"
            place = self._places.get((kind, label))
            if place is None:
                place = _Place(member, read)
                declare(label, lambda place=place: place.read())  # type: ignore[misc]
                self._places[kind, label] = place
                return
            holder: Any = place.member()
            if holder is None or holder is member or holder.watch is None:
                place.take(member, read)
                return
        raise ValueError(f"only the first {_MOST_OF_A_NAME} of {kind} {name!r} are measured")

    def add_worlds(self, watch: Watch, member: object, read: Read) -> None:
        """Count the bodies of the world, or the worlds, that `read` returns, with those of other sessions.

        Raises:
            ValueError: the bodies of this watch were declared by somebody else.

        """
        if not self._bodies_declared:
            watch.bodies(self._all_worlds)
            self._bodies_declared = True
        self._worlds[member] = read

    def remove_worlds(self, member: object) -> None:
        """The session has ended."""
        self._worlds.pop(member, None)

    def _all_worlds(self) -> list[Any]:
        found: list[Any] = []
        for read in list(self._worlds.values()):
            worlds = read()
            found += worlds if isinstance(worlds, list) else [worlds]
        return [world for world in found if world is not None]


_declarations: weakref.WeakKeyDictionary[Watch, Declarations] = weakref.WeakKeyDictionary()


def declarations(watch: Watch) -> Declarations:
    """What sessions have declared on `watch`."""
    with _lock:
        return _declarations.setdefault(watch, Declarations())


def _forget_all() -> None:
    global _lock
    _lock = threading.RLock()
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
