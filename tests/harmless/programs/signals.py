"""Signal handlers that raise: each alarm must come out of the code that was running."""

import signal
import time
import weakref


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


def steps(held, dropped, watch):
    signal.signal(signal.SIGALRM, _ring)
    while True:
        item = type("Item", (), {})()
        dropped.append(weakref.ref(item))
        try:
            _until_it_rings(held, item)
        except Alarm:
            pass
        watch.step()
        yield
