"""A loader that hands batches over in shared memory, beside a data set that is mapped from a file there."""

import atexit
import mmap
import os
import signal
import sys
import time
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import numpy as np

BATCH = 100_000
DATA = Path(f"/dev/shm/samples_{os.getpid()}")


def hand_over(batch):
    block = SharedMemory(create=True, size=BATCH)  # LEAK
    name = block.name
    np.ndarray(batch.shape, batch.dtype, block.buf)[:] = batch
    block.close()
    return name


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    atexit.register(os.remove, DATA)
    with DATA.open("wb") as file:
        for _ in range(200):
            file.write(os.urandom(1_000_000))
    with DATA.open("rb") as file:
        samples = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    at = total = 0
    for step in range(1_000_000):
        batch = np.frombuffer(samples[at : at + BATCH], np.uint8)
        at = (at + BATCH) % (len(samples) - BATCH)
        hand_over(batch)
        total += int(batch.sum())
        time.sleep(0.1)
        if step % 100 == 0:
            print(f"step {step}: {total / (step + 1):.0f}")


main()
