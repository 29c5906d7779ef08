"""Programs that change containers, instances, functions, threads and C objects of the interpreter."""

import array
import asyncio
import collections
import contextvars
import ctypes
import functools
import io
import itertools
import mmap
import os
import select
import signal
import sqlite3
import sys
import threading
import time
import weakref

from tests.harmless.programs import Item


class Record(dict):
    """A record that can be referred to weakly."""


class Key:
    """A key that must be compared by the program alone."""

    def __init__(self, number):
        self.number = number

    def __hash__(self):
        return self.number % 7

    def __eq__(self, other):
        return isinstance(other, Key) and self.number == other.number


@functools.lru_cache(maxsize=50)
def cached(number):
    """Something that is cached."""
    return [number] * 10


def containers(held, dropped, watch):
    """Containers that grow, shrink, rotate and are replaced, with keys that watch who compares them."""
    held.update(
        list=[], dict={}, set=set(), deque=collections.deque(maxlen=300), ordered=collections.OrderedDict(),
        counter=collections.Counter(), default=collections.defaultdict(list), keyed={}, cache=cached,
        chain=collections.ChainMap(), text=bytearray(), raw=array.array("d"), heap=collections.UserList(),
    )  # fmt: skip
    for count in itertools.count(1):
        item = Record(at=count, data=[count] * 5)
        dropped.append(weakref.ref(item))
        held["list"].append(item)
        held["dict"][f"name{count % 500}"] = item
        held["set"].add(count % 300)
        held["deque"].append((count, item))
        held["deque"].rotate(3)
        held["ordered"][count] = item
        held["counter"][count % 100] += 1
        held["default"][count % 90].append(item)
        held["keyed"][Key(count % 200)] = item
        held["text"] += b"x" * 50
        held["raw"].append(1.0)
        cached(count % 70)
        if count % 17 == 0:
            held["list"][:] = held["list"][-100:]
            held["ordered"].popitem(last=False)
            held["default"].clear()
        if count % 101 == 0:
            held["dict"] = dict(list(held["dict"].items())[:200])
            held["set"] = set(list(held["set"])[:50])
            held["keyed"].clear()
            held["ordered"].clear()
            held["text"].clear()
            del held["raw"][:]
            cached.cache_clear()
        if count % 1009 == 0:
            held["list"].clear()
            held["deque"].clear()
        held["nested"] = [[[item]] for _ in range(5)]
        yield


class Plain:
    """An instance with a dict."""

    shared: list = []

    def __init__(self):
        self.history = []
        self.name = "plain"


class Other(Plain):
    """What a plain one turns into."""


class Slotted:
    """An instance with slots."""

    __slots__ = ("__weakref__", "items", "next")


class Watching:
    """An instance that would notice if an attribute was asked for in the usual way."""

    def __init__(self):
        object.__setattr__(self, "kept", [])

    def __getattr__(self, name):
        raise AssertionError(f"somebody asked for {name}")

    @property
    def items(self):
        raise AssertionError("somebody asked for items")


def instances(held, dropped, watch):
    """Instances whose dict is replaced, whose class changes, and classes whose attributes do."""
    held["plain"] = plain = Plain()
    held["watching"] = watching = Watching()
    for count in itertools.count(1):
        plain.history.append(count)
        plain.__dict__ = {"history": plain.history[-50:], f"more{count % 40}": [count]}
        plain.__class__ = Other if count % 2 else Plain
        setattr(plain, f"name{count % 100}", {"at": count})
        if count % 10 == 0:
            vars(plain).clear()
            plain.history = []
        Plain.shared = [count] * (count % 30)
        setattr(Other, f"extra{count % 20}", [count])
        if count % 20 == 0 and hasattr(Other, "extra0"):
            del Other.extra0
        slotted = Slotted()
        slotted.items = [count]
        slotted.next = held.get("slotted")
        held["slotted"] = slotted if count % 200 else None
        dropped.append(weakref.ref(slotted))
        if count % 3 == 0:
            del slotted.items
        object.__setattr__(watching, "kept", [*watching.kept[-20:], slotted])
        made = type(f"Made{count % 50}", (Plain,), {"held": [count]})
        held["made"] = [made() for _ in range(3)]
        dropped.append(weakref.ref(held["made"][0]))
        if count % 50 == 0:
            object.__setattr__(watching, "kept", [])
        yield


variable = contextvars.ContextVar("variable")


def _generate(item):
    kept = [item]
    while True:
        kept.append([len(kept)])
        if len(kept) > 50:
            del kept[1:]
        yield kept


def _nested(depth, item):
    local = [item, depth]
    if depth:
        return _nested(depth - 1, item)
    later = [len(local)]
    if later[0] != 2:
        raise AssertionError("a local variable changed")
    return lambda: (local, later)


async def _wait(item):
    kept = [item]
    await asyncio.sleep(0)
    return len(kept)


def _fail(item):
    local = [item] * 3
    raise ValueError(len(local))


def functions(held, dropped, watch):
    """Generators, coroutines, closures, kept exceptions and the local variables of running functions."""
    try:
        yield from _steps(held, dropped)
    finally:
        variable.set([])


def _steps(held, dropped):
    held["errors"] = []
    for count in itertools.count(1):
        item = Item()
        dropped.append(weakref.ref(item))
        generator = _generate(item)
        next(generator)
        held["generator"] = generator
        next(generator)
        held["closure"] = _nested(count % 15, item)
        held["closure"]()
        if count % 10 == 0:
            asyncio.run(_wait(item))
        waiting = _wait(item)
        held["coroutine"] = waiting
        waiting.close()
        try:
            _fail(item)
        except ValueError as error:
            held["errors"].append(error)
            del held["errors"][:-10]
        variable.set([item])
        held["context"] = contextvars.copy_context()
        namespace = {}
        exec(f"def made(x=[{count % 30}]):\n    y = [x]\n    return y", namespace)
        held["made"] = namespace["made"]
        namespace["made"]()
        generator.close()
        yield


def _trace(frame, event, argument):
    frame.f_locals  # noqa: B018 - what a debugger does
    return _trace


def _work(item, count):
    first = [item]
    second = {"count": count}
    total = 0
    for number in range(20):
        total += number
        first.append(number)
    if len(first) != 21 or second["count"] != count or total != 190:
        raise AssertionError("a local variable changed")
    return first


def traced(held, dropped, watch):
    """A program under a debugger: a trace function that reads and writes local variables."""
    for count in itertools.count(1):
        item = Item()
        dropped.append(weakref.ref(item))
        sys.settrace(_trace if count % 3 else None)
        held["work"] = _work(item, count)
        sys.settrace(None)
        yield


class Alarm(Exception):
    """What the handler raises."""


def _ring(number, frame):
    raise Alarm


def _until_it_rings(held, item):
    held["items"] = [item]
    end = time.monotonic() + 20
    signal.setitimer(signal.ITIMER_REAL, 0.002)
    while time.monotonic() < end:
        held["items"].append(1)
        if len(held["items"]) > 500:
            del held["items"][1:]
    raise AssertionError("an alarm was lost")


def signals(held, dropped, watch):
    """Signal handlers that raise: each alarm must come out of the code that was running."""
    signal.signal(signal.SIGALRM, _ring)
    while True:
        item = Item()
        dropped.append(weakref.ref(item))
        try:
            _until_it_rings(held, item)
        except Alarm:
            pass
        watch.step()
        yield


def _waited(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    os.kill(child, 9)
    raise AssertionError("a child did not end")


def forks(held, dropped, watch):
    """Children that are forked while the parent is read; each must end by itself."""
    held["items"] = []
    while True:
        item = Item()
        dropped.append(weakref.ref(item))
        held["items"].append([item])
        del held["items"][:-50]
        child = os.fork()
        if not child:
            total = 0
            for number in range(2000):
                total += number
                watch.step()
            os._exit(0 if total == 1999000 else 3)
        if status := _waited(child):
            raise AssertionError(f"a child ended with status {status}")
        yield


class Point(ctypes.Structure):
    """A C structure."""

    _fields_ = (("x", ctypes.c_double), ("y", ctypes.c_double * 50))


def foreign(held, dropped, watch):
    """Objects of C code: databases, buffers that are resized, mapped memory, C structures."""
    base = sqlite3.connect(":memory:")
    base.execute("create table rows (at integer, text text)")
    held["base"] = base
    for count in itertools.count(1):
        item = Item()
        dropped.append(weakref.ref(item))
        held["item"] = item
        base.execute("insert into rows values (?, ?)", (count, "x" * 50))
        held["cursor"] = base.execute("select * from rows limit 5")
        held["cursor"].fetchone()
        if count % 50 == 0:
            base.execute("delete from rows")
            base.commit()
        grown = held.setdefault("grown", bytearray())
        grown.extend(b"x" * 100)
        if len(grown) > 20_000:
            grown.clear()
        numbers = held.setdefault("numbers", array.array("d"))
        numbers.append(1.0)
        if len(numbers) > 5000:
            del numbers[:]
        mapped = mmap.mmap(-1, 4096 * (1 + count % 5))
        held["mapped"] = mapped
        held["view"] = memoryview(bytes(1000))
        stream = io.BytesIO()
        held["stream"] = stream
        stream.write(b"y" * (count % 3000))
        stream.getvalue()
        held["points"] = (Point * 10)()
        held["structure"] = Point()
        mapped.close()
        yield


def waiting(held, dropped, watch):
    """The main thread only waits, each time in another way, while another thread allocates."""
    stopped, turn = threading.Event(), threading.Lock()
    held["kept"] = collections.deque(maxlen=300)

    def work():
        while not stopped.is_set():
            held["kept"].append([bytes(100)] * 5)
            time.sleep(0.0005)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    turn.acquire()
    try:
        for count in itertools.count(1):
            began, seconds = time.monotonic(), 0.01 * (count % 20)
            if count % 4 == 0:
                select.select([], [], [], seconds)
            elif count % 4 == 1:
                turn.acquire(timeout=seconds)
            elif count % 4 == 2:
                assert ctypes.CDLL(None).usleep(int(seconds * 1e6)) == 0, "interrupted"
            else:
                time.sleep(seconds)
            assert time.monotonic() - began >= seconds - 0.001, "woken early"
            item = Item()
            dropped.append(weakref.ref(item))
            yield
    finally:
        stopped.set()
        worker.join(60)


def down(levels):
    """Recursion as deep as wanted."""
    return 0 if not levels else 1 + down(levels - 1)


class Finalized:
    """Garbage with a finalizer of the program, in a circle."""

    def __init__(self):
        self.own = self

    def __del__(self):
        sum(range(10))


def recursion(held, dropped, watch):
    """Deep recursion while another thread makes garbage whose finalizers the collector calls."""
    stopped = threading.Event()

    def make_garbage():
        while not stopped.is_set():
            Finalized()
            time.sleep(0)

    maker = threading.Thread(target=make_garbage, daemon=True)
    maker.start()
    limit = sys.getrecursionlimit() - 100
    try:
        while True:
            assert down(limit) == limit
            item = Item()
            dropped.append(weakref.ref(item))
            yield
    finally:
        stopped.set()
        maker.join(60)
