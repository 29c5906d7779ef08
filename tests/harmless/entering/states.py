"""Programs by the state of their main thread while they are visited.

In each another thread works. The main thread repeats its state until a file says that the visits are over,
wakes once more, and ends by itself with a result and an exit code of its own. An argument says
how long each wait lasts: only a wait that is longer than a visit shows what the visit takes back too early.
"""

from __future__ import annotations

import textwrap

RESULT, EXIT_CODE = "right\n", 7

_FRAME = """
import faulthandler, os, sys, time
faulthandler.enable()
over, period, runner = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
def is_over():
    "A killed runner says nothing any more."
    return os.path.exists(over) or os.getppid() != runner
def on_time(call, seconds):
    "A call that returns nothing, zero or false, and not before its time."
    began = time.monotonic()
    result = call()
    assert not result, result
    assert time.monotonic() - began > seconds - 0.05, "woken early"
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
    while not is_over():
{step}
finally:
{end}
"""
_END = """
    stopped.set()
    worker.join()
    print("right" if set(sums) == {4950} else f"wrong: {set(sums)}", flush=True)
"""
NO_FILE, LITTLE_MEMORY = "no file is left", "little memory is left"
# By the name of a state: what comes before, and what is repeated.
_STATES: dict[str, tuple[str, str]] = {
    "sleep": ("", "on_time(lambda: time.sleep(period), period)"),
    "select": ("import select", "assert select.select([], [], [], period) == ([], [], [])"),
    "select without limit": (
        "import select; r, w = os.pipe(); every(period, lambda: os.write(w, b'x'))",
        "select.select([r], [], []); os.read(r, 1)",
    ),
    "poll": ("import select; p = select.poll()", "on_time(lambda: p.poll(period * 1000), period)"),
    "epoll": ("import select; p = select.epoll()", "on_time(lambda: p.poll(period), period)"),
    "Event": ("e = threading.Event()", "on_time(lambda: e.wait(period), period)"),
    "join": ("", "t = threading.Thread(target=time.sleep, args=(period,)); t.start(); t.join()"),
    "readline": (
        "r, w = os.pipe(); every(period, lambda: os.write(w, b'x\\n')); os.dup2(r, 0)",
        "assert sys.stdin.readline() == 'x\\n'",
    ),
    "accept, recv": (
        """
import socket
s = socket.create_server(("127.0.0.1", 0))
def wake():
    with socket.create_connection(s.getsockname()) as c:
        time.sleep(period / 2)
        c.send(b"x")
every(period, wake)
""",
        "c, _ = s.accept(); assert c.recv(10) == b'x'; c.close()",
    ),
    "write": (
        "r, w = os.pipe(); every(period, lambda: os.read(r, 65536))",
        "assert os.write(w, b'x' * 65536) == 65536",
    ),
    "flock": (
        """
import fcntl, tempfile
taken = tempfile.TemporaryFile()
wanted = open(f"/proc/self/fd/{taken.fileno()}")
fcntl.flock(taken, fcntl.LOCK_EX)
def in_turn():
    fcntl.flock(taken, fcntl.LOCK_UN)
    time.sleep(0.05)
    fcntl.flock(taken, fcntl.LOCK_EX)
every(period, in_turn)
""",
        "fcntl.flock(wanted, fcntl.LOCK_EX); fcntl.flock(wanted, fcntl.LOCK_UN); time.sleep(0.1)",
    ),
    "waitpid": (
        "import subprocess",
        "assert os.waitpid(subprocess.Popen(['sleep', str(period)]).pid, 0)[1] == 0",
    ),
    "sigwait": (
        """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
every(period, lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1))
""",
        "assert signal.sigwait([signal.SIGUSR1]) == signal.SIGUSR1",
    ),
    "lock": (
        "l = threading.Lock(); l.acquire(); every(period, lambda: l.locked() and l.release())",
        "l.acquire()",
    ),
    "asyncio": ("import asyncio", "asyncio.run(asyncio.sleep(10))"),
    "C code that waits": (
        "import ctypes",
        "on_time(lambda: ctypes.CDLL(None).usleep(int(period * 1e6)), period)",
    ),
    "C code that polls": (
        "import ctypes",
        "on_time(lambda: ctypes.CDLL(None).poll(None, 0, int(period * 1e3)), period)",
    ),
    "C code that computes": (
        "import hashlib; compute = lambda: hashlib.pbkdf2_hmac('sha256', b'a', b'b', int(period * 1e6));"
        " right = compute()",
        "assert compute() == right",
    ),
    "C code that holds the lock": (
        "import ctypes",
        "on_time(lambda: ctypes.PyDLL(None).usleep(int(period * 1e6)), period); time.sleep(3)",
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
    LITTLE_MEMORY: (
        """
import re, resource
size = int(re.search(r"VmSize:\\s*(\\d+)", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (int(64 + 20 * period) << 20),) * 2)
""",
        "time.sleep(0.2)",
    ),
    "traced": (
        """
steps = traced = 0
def step(): time.sleep(0.2)
def trace(frame, *_):
    global traced
    traced += frame.f_code is step.__code__
sys.settrace(trace)
""",
        "step(); steps += 1; assert traced == steps, (traced, steps)",
    ),
    "audited": (
        """
said = heard = 0
def hear(name, _):
    global heard
    heard += name == "own"
sys.addaudithook(hear)
""",
        "sys.audit('own'); said += 1; assert heard == said, (heard, said); time.sleep(0.2)",
    ),
    "garbage at every moment": (
        """
import gc
gc.set_threshold(1)
made, ended = 0, []
class Circle:
    def __init__(self): self.own = self
    def __del__(self): ended.append(1)
""",
        """
Circle(); made += 1
while len(ended) < made: gc.collect(); time.sleep(0.001)
assert len(ended) == made, (len(ended), made)
time.sleep(0.001)
""",
    ),
    "threads that rarely change": ("sys.setswitchinterval(1)", "assert sum(range(10000)) == 49995000"),
}
_ALONE = """
import signal
print("ready", flush=True)
while not is_over():
    assert sum(range(100)) == 4950
    time.sleep(0.02)
print("right" if "threading" not in vars() else "wrong", flush=True)
sys.exit(7)
"""
# Its main thread has nothing left to do but to wait for another one.
_RETURNED = """
def last():
    while not is_over(): time.sleep(0.05)
    stopped.set()
    worker.join()
    print("right" if set(sums) == {4950} else "wrong", flush=True)
threading.Thread(target=last).start()
print("ready", flush=True)
sys.exit(7)
"""
# Another program takes the place of this one in the same process, again and again.
_REPLACED = """
import random
if sys.argv[-1] != "again": print("ready", flush=True)
time.sleep(period * random.random())
if not is_over():
    given = sys.orig_argv[:6]
    os.execv(sys.executable, [*given, "again"])
stopped.set()
worker.join()
print("right", flush=True)
sys.exit(7)
"""
# Ends at any moment, without being told.
_ENDING = """
import atexit, random
class Slow:
    def __del__(self):
        until = time.monotonic() + 0.2
        while time.monotonic() < until: pass
slow, seconds = Slow(), period * random.random()
atexit.register(time.sleep, 0.1)
print("ready", flush=True)
time.sleep(seconds)
stopped.set()
worker.join()
print("right", flush=True)
sys.exit(7)
"""
ALONE, ENDING = "without threading", "an interpreter that ends"
RETURNED, REPLACED = "a main thread that has returned", "exec"
_OTHERS = {
    ALONE: _FRAME + _ALONE,
    ENDING: _FRAME + _WORKER + _ENDING,
    RETURNED: _FRAME + _WORKER + _RETURNED,
    REPLACED: _FRAME + _WORKER + _REPLACED,
}
NAMES = (*_STATES, *_OTHERS)


def program(name: str) -> str:
    """The text of a program.

    Its arguments are the file that says that the visits are over, the seconds that it waits at a time, and
    the process that started it, without which it ends as well.
    """
    if name in _OTHERS:
        return _OTHERS[name]
    before, step = _STATES[name]
    until = _UNTIL_OVER.format(step=textwrap.indent(step, " " * 8), end=_END)
    return f"{_FRAME}{_WORKER}{before}\n{until}\nsys.exit({EXIT_CODE})\n"
