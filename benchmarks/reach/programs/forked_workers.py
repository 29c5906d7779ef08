"""Forks workers all the time, as pools and loaders do; every result and every end is checked."""

import os

print("ready", flush=True)
while True:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, str(sum(range(1000))).encode())
        os._exit(7)
    os.close(writer)
    got = os.read(reader, 100)
    os.close(reader)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 7 or got != b"499500":
        raise SystemExit("a wrong result")
