"""Programs by the state of their main thread while they are visited.

In each another thread works. The main thread repeats its state until a file says that the visits are over,
wakes once more, and ends by itself with a result and an exit code of its own.
"""

from __future__ import annotations

import textwrap

RESULT, EXIT_CODE = "right\n", 7

_FRAME = """
import faulthandler, os, sys, time
faulthandler.enable()
over = sys.argv[1]
"""
_WORKER = """
import threading
stopped = threading.Event()
sums = []
def work():
    kept = []
    while not stopped.is_set():
        kept.append(bytes(500))
        sums.append(sum(range(100)))
        if len(kept) > 2000:
            kept.clear()
            del sums[:1000]
        time.sleep(0.001)
worker = threading.Thread(target=work)
worker.start()
def every(seconds, wake):
    "Call it again and again in another thread."
    def again():
        while not stopped.wait(seconds):
            wake()
    threading.Thread(target=again, daemon=True).start()
"""
_UNTIL_OVER = """
print("ready", flush=True)
try:
    while not os.path.exists(over):
{step}
finally:
{end}
"""
_END = """
    stopped.set()
    worker.join()
    print("right" if len(sums) > 10 and set(sums) == {4950} else "wrong", flush=True)
"""
_SLEEPS = {f"sleep {seconds:g} s": f"time.sleep({seconds})" for seconds in (0.1, 1, 6, 8, 30)}

NO_FILE = "no file is left"
# By the name of a state: what comes before, and what is repeated.
_STATES: dict[str, tuple[str, str]] = {
    **{name: ("", step) for name, step in _SLEEPS.items()},
    "select": ("import select", "select.select([], [], [], 3)"),
    "select without limit": (
        "import select; r, w = os.pipe(); every(3, lambda: os.write(w, b'x'))",
        "select.select([r], [], []); os.read(r, 1)",
    ),
    "poll": ("import select; p = select.poll()", "p.poll(3000)"),
    "epoll": ("import select; p = select.epoll()", "p.poll(3)"),
    "epoll without limit": (
        """
import select
r, w = os.pipe()
every(3, lambda: os.write(w, b'x'))
p = select.epoll()
p.register(r)
""",
        "p.poll(); os.read(r, 1)",
    ),
    "queue.get": ("import queue; q = queue.Queue(); every(3, lambda: q.put(1))", "q.get()"),
    "Condition": ("c = threading.Condition()", "with c: c.wait(3)"),
    "Event": ("e = threading.Event()", "e.wait(3)"),
    "join": ("", "t = threading.Thread(target=time.sleep, args=(3,)); t.start(); t.join()"),
    "readline": (
        "r, w = os.pipe(); every(3, lambda: os.write(w, b'x\\n')); f = os.fdopen(r)",
        "f.readline()",
    ),
    "accept, recv": (
        """
import socket
s = socket.create_server(("127.0.0.1", 0))
def wake():
    with socket.create_connection(s.getsockname()) as c:
        time.sleep(1)
        c.send(b"x")
every(2, wake)
""",
        "c, _ = s.accept(); assert c.recv(10) == b'x'; c.close()",
    ),
    "waitpid": (
        "import subprocess",
        "assert os.waitpid(subprocess.Popen(['sleep', '3']).pid, 0)[1] == 0",
    ),
    "sigwait": (
        """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
every(3, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
""",
        "assert signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1",
    ),
    "pause": (
        """
import signal
signal.signal(signal.SIGUSR1, lambda *_: None)
every(1, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
""",
        "signal.pause()",
    ),
    "lock": (
        "l = threading.Lock(); l.acquire(); every(3, lambda: l.locked() and l.release())",
        "l.acquire()",
    ),
    "asyncio": ("import asyncio", "asyncio.run(asyncio.sleep(10))"),
    "uvloop": ("import asyncio, uvloop", "uvloop.run(asyncio.sleep(10))"),
    "C code that waits": ("import ctypes", "assert ctypes.CDLL(None).usleep(3000000) == 0"),
    "C code that polls": ("import ctypes", "assert ctypes.CDLL(None).poll(None, 0, 3000) == 0"),
    "C code that computes": (
        "import hashlib; right = hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2000000)",
        "assert hashlib.pbkdf2_hmac('sha256', b'a', b'b', 2000000) == right",
    ),
    "C code that holds the lock": (
        "import ctypes",
        "assert ctypes.PyDLL(None).usleep(3000000) == 0; time.sleep(3)",
    ),
    "busy": ("", "for _ in range(10000): assert sum(range(100)) == 4950"),
    "deep recursion": (
        """
def down(levels):
    return 0 if not levels else 1 + down(levels - 1)
limit = sys.getrecursionlimit() - 20
""",
        "assert down(limit) == limit",
    ),
    "handlers that raise": (
        """
import signal
class Raised(Exception): pass
armed, raised, caught = False, 0, 0
def handle(*_):
    global armed, raised
    if armed:
        armed, raised = False, raised + 1
        raise [Raised, SystemExit][raised % 2](raised)
signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.003, 0.003)
import atexit
atexit.register(signal.setitimer, signal.ITIMER_REAL, 0)
""",
        """
try:
    armed = True
    while True: sum(range(100))
except (Raised, SystemExit) as error:
    caught += 1
    assert error.args == (raised,) == (caught,), error.args
""",
    ),
    "forks": (
        "",
        """
child = os.fork()
if not child:
    import http.server, json, logging
    os._exit(json.loads("3"))
assert os.waitpid(child, 0)[1] >> 8 == 3
""",
    ),
    "spawns": (
        "import subprocess",
        "assert subprocess.run([sys.executable, '-c', 'raise SystemExit(3)']).returncode == 3",
    ),
    "threads that end": (
        "",
        "for _ in range(20): t = threading.Thread(target=sum, args=([1],)); t.start(); t.join()",
    ),
    NO_FILE: (
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
files = []
try:
    while True: files.append(open(os.devnull))
except OSError: pass
""",
        "time.sleep(0.5)",
    ),
    "traced": ("sys.settrace(lambda *_: None); called = []", "called.append(sum([1])); time.sleep(0.2)"),
    "audited": (
        "events = []; sys.addaudithook(lambda name, _: events.append(name) or events.clear())",
        "time.sleep(2)",
    ),
}
_ALONE = """
import signal
print("ready", flush=True)
while not os.path.exists(over):
    assert sum(range(100)) == 4950
    time.sleep(0.02)
print("right" if "threading" not in vars() else "wrong", flush=True)
sys.exit(7)
"""
# Ends at any moment, without being told.
_ENDING = """
import atexit, random
class Slow:
    def __del__(self):
        until = time.monotonic() + 0.2
        while time.monotonic() < until: pass
slow, seconds = Slow(), 2 * random.random()
atexit.register(time.sleep, 0.1)
print("ready", flush=True)
time.sleep(seconds)
stopped.set()
worker.join()
print("right", flush=True)
sys.exit(7)
"""
ALONE, ENDING = "without threading", "an interpreter that ends"
NAMES = (*_STATES, ALONE, ENDING)
# Those of which seven of twelve ended of one visit.
FIRST_TWELVE = (
    *("sleep 6 s", "sleep 8 s", "sleep 30 s", "sleep 1 s", "select", "epoll", "asyncio", "join", "readline"),
    *("queue.get", "Condition", "lock"),
)


def program(name: str) -> str:
    """The text of a program; its argument is the file that says that the visits are over."""
    if name == ALONE:
        return _FRAME + _ALONE
    if name == ENDING:
        return _FRAME + _WORKER + _ENDING
    before, step = _STATES[name]
    until = _UNTIL_OVER.format(step=textwrap.indent(step, " " * 8), end=_END)
    return f"{_FRAME}{_WORKER}{before}\n{until}\nsys.exit({EXIT_CODE})\n"
