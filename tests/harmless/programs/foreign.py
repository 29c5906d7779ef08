"""Objects of C code: databases, buffers that are lent and resized, mapped memory, C structures."""

import array
import ctypes
import io
import mmap
import sqlite3
import weakref


class Point(ctypes.Structure):
    """A C structure."""

    _fields_ = (("x", ctypes.c_double), ("y", ctypes.c_double * 50))


class Item:
    """Something that the program holds."""


def steps(held, dropped, watch):
    base = sqlite3.connect(":memory:")
    base.execute("create table rows (at integer, text text)")
    held["base"] = base
    count = 0
    while True:
        count += 1
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
