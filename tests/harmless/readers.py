"""Reads everything all the time: the explainer with a clock that runs fast, and each reader by itself."""

from __future__ import annotations

import gc
import sys
import threading
import time
import traceback
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

from heapwatch import Watch
from heapwatch.collectors.gpu import GpuCollector
from heapwatch.explain.engine import Explainer
from heapwatch.explain.program import Program
from heapwatch.explain.rises import Rises
from heapwatch.explain.weigh import traits_of
from heapwatch.measure.gpu import allow_capture
from heapwatch.measure.introspection.containers import array_bytes, items_in, shape_of
from heapwatch.measure.introspection.layout import classes, layout_of
from heapwatch.measure.introspection.reading import parts
from heapwatch.measure.introspection.roots import OWN_THREADS, Root
from heapwatch.measure.objects.instances import InstanceCounter
from heapwatch.measure.objects.tracked import large_objects
from heapwatch.measure.process.memory import ResidentMemory
from heapwatch.measure.process.process_tree import ProcessTree
from heapwatch.measure.sizing.deep_size import deep_size
from heapwatch.measure.sizing.foreign import Mappings, reader_of
from heapwatch.measure.sizing.replay_buffers import attached_tensors, contents_of
from heapwatch.measure.sizing.sampling import ContainerChanged
from heapwatch.measure.sizing.tensor_storage import Storages, has_graph, read_graphs, tensor_parts
from heapwatch.measure.sizing.traversal import OutOfTime
from heapwatch.runtime.failures import Failures
from heapwatch.runtime.owned_reads import OwnedReads

_FEWEST_ROUNDS = 1
_SPEED = 500.0  # seconds of the explainer's clock in a second
_WINDOW_SECONDS = 0.005
_EXPECTED = (OutOfTime, ContainerChanged, RuntimeError, TypeError, ValueError)


class Readers:
    """Threads for the explainer, for measurements as of what was declared, and for readers of objects."""

    def __init__(self, watch: Watch, held: dict[str, Any]) -> None:
        self._counts: Counter[str] = Counter()
        self._errors: list[str] = []
        self._held = held
        self._stopped = threading.Event()
        self._reads = OwnedReads(watch.exporter.safe_point)
        began = time.monotonic()
        self._explainer = Explainer(
            Program(extra_roots=lambda: [Root("held", "held", lambda: held)]),
            reads=self._reads,
            clock=lambda: (time.monotonic() - began) * _SPEED,
            spent=lambda: 0.0,
        )
        self._explainer.evaluator.search.census.pause_limit.allowed = 60.0
        self._failures = Failures()
        self._memory = ResidentMemory()
        self._gpus = GpuCollector(self._failures, ProcessTree())
        self._threads: list[threading.Thread] = []

    def start(self, who: str) -> None:
        """Begin to read: `all`, the `readers` or the `windows` of the profile function, or `nothing`."""
        reading = {
            "all": (self._explain, self._measure, self._read),
            "readers": (self._read,),
            "windows": (self._profile,),
            "nothing": (),
        }
        for read in reading[who]:
            thread = threading.Thread(
                target=self._repeat, args=[read], name=f"{OWN_THREADS}{read.__name__}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)

    def told(self) -> str:
        """What was read, and how often."""
        rounds = self._explainer.inventory.rounds
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self._counts.items()))
        return f"{rounds} walks, {len(self._explainer.inventory.known)} known, {counts}"

    def few(self, who: str) -> list[str]:
        """What was read too few times to have shown anything."""
        counted = {"all": "explain", "readers": "objects read", "windows": "windows"}.get(who)
        return [] if counted is None or self._counts[counted] >= _FEWEST_ROUNDS else [counted]

    def problems(self, who: str) -> list[str]:
        """Errors of the library itself, and what was read too few times."""
        alive = [f"{thread.name} did not end" for thread in self._threads if thread.is_alive()]
        failed = [f"failures: {dict(self._failures.counts)}"] if self._failures.counts else []
        few = [f"too few times: {counted}" for counted in self.few(who)]
        return self._errors[:5] + alive + failed + few

    def _repeat(self, read: Any) -> None:
        while not self._stopped.is_set():
            allow_capture()
            try:
                read()
            except Exception:
                self._errors.append(traceback.format_exc())
                self._stopped.wait(0.1)

    def _explain(self) -> None:
        for _ in range(20):
            self._explainer.tick()
        explainer = self._explainer
        explainer.explain_now()
        self._counts["explain"] += 1
        explainer.evaluator.search.census.count()
        explainer.evaluator.search.uncollected.examine()
        for known in list(explainer.inventory.known.values())[-50:]:
            traits_of(known, explainer.inventory)
        self._counts["answers of the program"] += self._reads.ask(lambda: 1) == 1

    def _measure(self) -> None:
        for value in list(self._held.values()):
            for measure in (_sized, _stored):
                try:
                    measure(value, self._reads)
                except _EXPECTED:
                    continue
                finally:
                    self._counts[measure.__name__.strip("_")] += 1
        value = None
        list(self._gpus.collect())
        large_objects(1e4)
        watched = [getattr(sys.modules.get("torch"), "Tensor", dict), type("Own", (), {})]
        InstanceCounter([*watched, *classes("numpy", "ndarray")]).take()

    def _read(self) -> None:
        for obj in _inside(self._held):
            layout = layout_of(type(obj))
            try:
                list(parts(obj, layout, 8))
                items_in(obj, layout)
                array_bytes(obj, layout)
                shape_of(obj, layout)
                if layout.kind == "tensor":
                    self._read_tensor(obj)
                elif (reader := reader_of(layout.mro)) is not None:
                    list(reader(obj, Mappings()))
            except _EXPECTED:
                continue
            finally:
                self._counts["objects read"] += 1

    def _profile(self) -> None:
        rises = Rises(self._reads.ask, self._memory.read)
        rises.step(1.0)
        self._stopped.wait(_WINDOW_SECONDS)
        rises.stop()
        self._counts["windows"] += 1

    def _read_tensor(self, tensor: Any) -> None:
        for _ in range(50):
            storages = Storages()
            tensor_parts(tensor, storages)
            has_graph(tensor)
        storages.read(self._reads.ask)
        weak = [weakref.ref(tensor)]
        read_graphs(weak)
        self._reads.ask(lambda: read_graphs(weak))


def _inside(held: dict[str, Any]) -> Iterator[Any]:
    """What the program holds, and the parts of it at some depth."""
    ahead, seen = list(held.values()), set[int]()
    while ahead and len(seen) < 300:
        obj = ahead.pop()
        if id(obj) in seen:
            continue
        seen.add(id(obj))
        yield obj
        if layout_of(type(obj)).kind not in ("class", "module", "function", "array"):
            ahead += gc.get_referents(obj)[-20:]


def _sized(value: Any, reads: OwnedReads) -> None:
    storages = Storages()
    deep_size(value, budget_seconds=0.05, storages=storages)
    if storages.wanted:
        storages.read(reads.ask)
        deep_size(value, budget_seconds=0.05, storages=storages)


def _stored(value: Any, _: OwnedReads) -> None:
    contents = contents_of(value)
    attached_tensors(contents)
    contents.size()
