"""Deep size of live objects: every byte once, long containers from a sample, within a time budget.

Memory shared inside the measured object is counted once: views with their base, a `next_state` with the
`state` of the following item, constants with their other holders. The method: `traversal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.sizing.tensor_storage import Storages
from heapwatch.measure.sizing.traversal import FEWEST_SAMPLES, SURE, OutOfTime, Tally, Walk

__all__ = ["OutOfTime", "Size", "deep_size", "size_by_items"]

SAMPLES = 32
BUDGET_SECONDS = 0.05
_LONG = 128  # items of a container inside an item from which it is estimated: objects have fewer attributes


@dataclass(frozen=True)
class Size:
    """Deep size of an object.

    Attributes:
        bytes: on the heap of this process.
        error_bytes: how far `bytes` may be off: three standard errors of the estimate, plus memory that may
            be held unseen or was counted more than once. 0 if every object was visited and is of a known
            type.
        gpu_bytes: on an accelerator.
        mapped_bytes: in file-backed pages.
        shared_bytes: in memory shared with other processes.
        objects: number of objects visited.
        unread: number of objects with memory of unknown size, such as an autograd graph. If there is one,
            `error_bytes` includes the resident memory of the whole process.

    """

    bytes: int
    error_bytes: int = 0
    gpu_bytes: int = 0
    mapped_bytes: int = 0
    shared_bytes: int = 0
    objects: int = 0
    unread: int = 0

    @property
    def held_bytes(self) -> int:
        """Bytes on the heap, on an accelerator and in shared memory."""
        return self.bytes + self.gpu_bytes + self.shared_bytes

    def times(self, share: float) -> Size:
        """The size of a part, or of a multiple, of the object."""
        names = ("bytes", "error_bytes", "gpu_bytes", "mapped_bytes", "shared_bytes")
        return replace(self, **{name: round(share * getattr(self, name)) for name in names})


def deep_size(
    obj: object,
    *,
    samples: int = SAMPLES,
    budget_seconds: float = BUDGET_SECONDS,
    elsewhere: Iterable[int] = (),
    one_of_many: bool = False,
    storages: Storages | None = None,
) -> Size:
    """Bytes that `obj` and everything reachable from it hold, each counted once.

    Objects whose ids are in `elsewhere`, and what only they hold, are left out. With `one_of_many` so are all
    other objects of the same class: of a node of a tree, its parent and its children.

    Classes, modules, functions' globals and the frames of running functions are not followed. A container of
    more than `samples` items is estimated from a stratified sample of that many; of up to 32 times as many if
    the standard error is above 1 %.

    Of a tensor that another thread may be changing, the part of its storage that it uses counts, unless
    `storages` knows the whole.

    Raises:
        ContainerChanged: another thread kept changing a container while it was read.
        OutOfTime: the objects that must be visited one by one did not fit in the budget.

    """
    walk = Walk(samples, budget_seconds, elsewhere, storages)
    tally = walk.one_of_many(obj, samples) if one_of_many else walk.everything([obj], samples)[0]
    return _size(tally, walk)


def size_by_items(
    items: Sequence[object],
    length: int,
    *,
    budget_seconds: float = BUDGET_SECONDS,
    elsewhere: Iterable[int] = (),
    storages: Storages | None = None,
) -> Size:
    """Bytes that `length` items hold, from two or more of them that are too large to visit many.

    Each counts without what those before it hold. So the first stands for what all share, and the mean of the
    others for each of the rest.

    Raises:
        ContainerChanged, OutOfTime: as `deep_size`.

    """
    walk = Walk(_LONG, budget_seconds, elsewhere, storages)
    tally, *further = [walk.everything([item], FEWEST_SAMPLES)[0] for item in items]
    for item_tally in further:
        tally.add(item_tally, (length - 1) / len(further))
    return _size(tally, walk)


def _size(tally: Tally, walk: Walk) -> Size:
    by_place = {place: round(nbytes) for place, nbytes in tally.bytes_by_place.items()}
    unseen = 0.0
    if tally.unread or tally.slack:
        resident = ResidentMemory().read()
        unseen = resident if tally.unread else min(tally.slack, resident)
    return Size(
        bytes=by_place["heap"],
        error_bytes=math.ceil(SURE * math.sqrt(tally.variance) + unseen),
        gpu_bytes=by_place.get("gpu", 0),
        mapped_bytes=by_place.get("mapped", 0),
        shared_bytes=by_place.get("shared", 0),
        objects=walk.objects,
        unread=math.ceil(tally.unread),
    )
