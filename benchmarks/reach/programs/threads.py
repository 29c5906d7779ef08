"""Threads that start and end threads, timers that ring 300 times a second, sleeps that must not be short."""

import signal
import threading
import time

signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)


def work():
    kept = {}
    while True:
        for at in range(3000):
            kept[at] = [at] * 7
        child = threading.Thread(target=time.sleep, args=(0.001,))
        child.start()
        child.join()


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
print("ready", flush=True)
while True:
    began = time.monotonic()
    time.sleep(0.002)
    if time.monotonic() - began < 0.0019:
        raise SystemExit("woken early")
    thread = threading.Thread(target=sum, args=(range(1000),))
    thread.start()
    thread.join()
