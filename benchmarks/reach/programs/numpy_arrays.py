"""Sums of arrays, and memory that is taken and given back all the time; every sum is checked."""

import numpy

values = numpy.arange(100_000, dtype=numpy.float64)
kept = [None] * 500
turn = 0
print("ready", flush=True)
while True:
    turn += 1
    kept[turn % 500] = bytes(1000 + turn * 37 % 20_000)
    if float((values * 2.0 + 1.0).sum()) != 10_000_000_000.0:
        raise SystemExit("a wrong number")
