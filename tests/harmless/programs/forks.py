"""Children that are forked while the parent is looked at; each must end by itself."""

import os
import time
import weakref


class Item:
    """Something that the program holds."""


def _waited(child):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    os.kill(child, 9)
    raise AssertionError("a child did not end")


def steps(held, dropped, watch):
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
