"""Compares the containers of a program before and after some work: a cell of a notebook, a round of a test.

The number of readings takes the place of the time, as nothing runs between two readings.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from heapwatch.explain.candidate import Candidate
from heapwatch.explain.describe import Describer
from heapwatch.explain.inventory import Inventory
from heapwatch.explain.places import KnownContainer
from heapwatch.explain.sites import Site
from heapwatch.explain.weigh import is_inside, weigh
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.roots import OWN_THREADS, Root
from heapwatch.text.numbers import count_change, size_change

T = TypeVar("T")

MOST_WEIGHED = 20
_READ_SECONDS = 10.0
_DEADLINE_SECONDS = 120.0


@dataclass(frozen=True)
class Growing:
    """Something that has grown.

    Attributes:
        name: its path as written in code, or in words what it is.
        about: what it holds, in words.
        bytes: growth; None if it cannot be measured.
        items: growth; None if items are not counted.
        site: the line where it grows.
        holders: what holds it, the nearest first.
        remedy: what to do.
        graph: whether its items keep autograd graphs, whose bytes are not among these.

    """

    name: str
    about: str
    bytes: float | None = None
    items: float | None = None
    site: Site | None = None
    holders: tuple[str, ...] = ()
    remedy: str | None = None
    graph: bool = False

    def text(self, unit: str = "", line: str | None = None) -> str:
        """One line for it: its growth in a `unit` such as "a round", and the line in words, if known."""
        facts = [] if self.bytes is None else [size_change(self.bytes)]
        if self.items is not None:
            facts.append(f"{count_change(self.items)} items")
        text = f"{self.name} ({self.about}): {' and '.join(facts) or 'grows'} {unit}".rstrip()
        if line is not None:
            text += f", filled at {line}"
        elif self.holders:
            text += f", held by {' < '.join(self.holders)}"
        return f"{text}. Suggested: {self.remedy}." if self.remedy else f"{text}."


class Comparison:
    """Reads the containers of a program on request.

    Args:
        roots: where objects are kept, in addition to modules and running functions.

    Attributes:
        readings: number of readings so far.
        inventory: the containers, whose levels are those at each reading.
        describer: finds the lines that fill them.

    """

    def __init__(self, roots: Callable[[], list[Root]] = list) -> None:
        self.readings = 0
        self.inventory = Inventory(self.now, lambda: 0.0, roots)
        self.describer = Describer(self.inventory)

    def now(self) -> float:
        """The number of readings, as a clock."""
        return float(self.readings)

    def read(self) -> None:
        """Look for new containers, and read every one."""
        self.readings += 1
        self.inventory.discover(_READ_SECONDS)
        for container in list(self.inventory.known.values()):
            container.due = 0.0
        self.inventory.lengths.read(_READ_SECONDS)

    def weighed(self, container: KnownContainer, since: float, seconds: float) -> Candidate:
        """A container with its growth since a reading, its line, and its bytes, measured within `seconds`."""
        weigh(container, self.inventory, self.now(), seconds)
        # One at a time: of several, the describer leaves some to its next call.
        return self.describer.describe_all([(container, container.items.growth(since))])[0]


def described(candidate: Candidate, nbytes: float, items: float) -> Growing:
    """The description of a container that has grown by `nbytes` bytes and `items` items."""
    container = candidate.known
    return Growing(
        container.path,
        " of ".join(filter(None, (container.type_name, candidate.traits.item_type))),
        nbytes if nbytes > 0 else None,
        None if container.in_bytes else items,
        candidate.site,
        candidate.holders,
        candidate.remedy,
        candidate.traits.graph,
    )


def foremost(weighed: Iterable[tuple[float, Candidate]]) -> Iterator[tuple[float, Candidate]]:
    """Growing containers with their bytes, most first, without those inside another or with the same items.

    A container inside one with a bound counts, as it may itself grow without a bound.
    """
    paths: list[str] = []
    ids: set[int] = set()
    for nbytes, candidate in sorted(weighed, key=lambda entry: (-entry[0], len(entry[1].known.path))):
        container = candidate.known
        if not (candidate.traits.ids & ids or any(is_inside(container.path, path) for path in paths)):
            yield nbytes, candidate
        ids |= candidate.traits.ids
        if nbytes > 0 and (container.kind == "ring" or not candidate.bounded):
            paths.append(container.path)


def read_apart(work: Callable[[], T]) -> T:
    """Run `work` in a thread of this package, whose functions are no roots of a walk.

    Garbage is collected first, unless the program has switched the collector off.

    Raises:
        TimeoutError: an object could not be read.

    """
    if gc.isenabled():
        gc.collect()
    done: Future[T] = Future()

    def run() -> None:
        allow_capture()
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=f"{OWN_THREADS}comparison", daemon=True).start()
    return done.result(timeout=_DEADLINE_SECONDS)
