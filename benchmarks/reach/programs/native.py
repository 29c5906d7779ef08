"""Takes memory of C code and keeps it, 2 MB a second, in the way that the first argument names."""

import ctypes
import ctypes.util
import sys
import time


def sqlite():
    import sqlite3

    database = sqlite3.connect(":memory:", check_same_thread=False)
    database.execute("create table steps (observation blob)")
    while True:
        database.execute("insert into steps values (?)", (b"x" * 20_000,))
        yield


def box2d():
    import Box2D

    world = Box2D.b2World()
    body = world.CreateStaticBody()
    while True:
        for _ in range(100):
            body.CreateEdgeFixture(vertices=[(0, 0), (1, 0)])
        yield


class Stream(ctypes.Structure):
    """`z_stream` of zlib.h, whose state is what a simulator's handle is."""

    _fields_ = [(f"field_{number}", ctypes.c_long) for number in range(14)]


def library():
    zlib = ctypes.CDLL(ctypes.util.find_library("z"))
    zlib.zlibVersion.restype = ctypes.c_char_p
    version = zlib.zlibVersion()
    while True:
        stream = Stream()
        zlib.deflateInit_(ctypes.byref(stream), 6, version, ctypes.sizeof(stream))
        for _ in range(3):
            yield


def torch_cycle():
    import torch

    while True:
        torch.ones(2000, requires_grad=True).square().sum().backward(create_graph=True)
        yield


KINDS = {
    "SQLite in memory": sqlite,
    "Box2D fixtures": box2d,
    "C library by ctypes": library,
    "torch: C++ cycle": torch_cycle,
}
if __name__ == "__main__":
    for _ in KINDS[sys.argv[1]]():
        time.sleep(0.01)
