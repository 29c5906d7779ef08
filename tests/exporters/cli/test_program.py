"""`heapwatch run` is `python`: the same programs under both have the same end, output, signals and files."""

# ruff: noqa: E501 - programs, one a line

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PYTHON = [sys.executable]
HEAPWATCH = [sys.executable, "-m", "heapwatch.cli.main", "run"]


@pytest.fixture(autouse=True, scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Python's own modules are compiled once, and no program finds compiled files beside it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


@dataclass
class End:
    """How a program ended."""

    code: int
    said: str
    told: str
    files: dict[str, bytes]


def both(
    folder: Path,
    *arguments: str,
    stdin: str = "",
    send: tuple[int, ...] = (),
    environment: dict[str, str] | None = None,
) -> tuple[End, End]:
    """The end of a program under Python and under `heapwatch run`, side by side, each in a copy of `folder`.

    Each of the signals of `send` is sent to it when it has printed a line.
    """
    started = []
    for name, command in (("python", PYTHON), ("heapwatch", HEAPWATCH)):
        # One path for both, as a program may print its own.
        place = folder.parent / name / "here"
        shutil.copytree(folder, place)
        absent = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
        variables = {name: value for name, value in os.environ.items() if name not in absent}
        variables |= {f"HEAPWATCH_{name}": str(folder.parent / name) for name in ("TARGETS_DIR", "STATE")}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(
            [*command, *arguments],
            cwd=place,
            env=variables | (environment or {}),
            text=True,
            start_new_session=True,
            **pipes,
        )
        started.append((process, place))
    # Both are signalled before either is waited for: a worker that goes on keeps the output of its parent open.
    firsts = []
    for process, _ in started:
        assert process.stdout is not None
        firsts.append("")
        for number in send:
            firsts[-1] += process.stdout.readline()
            time.sleep(0.5)  # until it does what it said
            process.send_signal(number)
    ends = []
    for (process, place), first in zip(started, firsts, strict=True):
        try:
            said, reported = process.communicate(stdin or None, timeout=60)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        reported = re.sub("heapwatch: .*\n", "", reported)
        # From 3.12 on Python warns of a fork beside threads, and the watch is one.
        reported = re.sub(".*DeprecationWarning: This process .*is multi-threaded.*\n.*\n", "", reported)
        files = {
            str(path.relative_to(place)): path.read_bytes().replace(os.fsencode(place), b"HERE")
            for path in place.rglob("*")
            if path.is_file()
        }
        ends.append(
            End(process.returncode, *(_same(text, place) for text in (first + said, reported)), files)
        )
    return ends[0], ends[1]


def _same(text: str, place: Path) -> str:
    return re.sub("0x[0-9a-f]+", "ADDRESS", text.replace(str(place), "HERE"))


def folder(tmp_path: Path, **files: str) -> Path:
    """A folder with these files; `___` in a name separates folders."""
    place = tmp_path / "program"
    place.mkdir()
    for name, text in files.items():
        path = place / name.replace("___", "/", 1)
        path = path.with_name(f"{path.name}.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return place


SEEN = """
import faulthandler, gc, inspect, json, locale, logging, os, signal, sys, threading, warnings
main = sys.modules["__main__"]
print(json.dumps({
    "names": {name: str(value) for name, value in sorted(vars(main).items()) if name.startswith("__")},
    "is main": main.__dict__ is globals(),
    "builtins": type(__builtins__).__name__,
    "argv": [sys.argv, "".join(sys.orig_argv[1:]).replace("-", "")],
    "path": sys.path,
    "flags": [str(sys.flags), sys.warnoptions, sys._xoptions, [str(f[:3]) for f in warnings.filters]],
    "environment": dict(os.environ),
    "frames": len(inspect.stack()),
    "hooks": [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__,
              threading.excepthook is threading.__excepthook__, str(sys.gettrace()), str(sys.getprofile())],
    "signals": [str(signal.getsignal(one)) for one in sorted(signal.valid_signals())
                if one not in (signal.SIGTERM, signal.SIGALRM)],
    "collector": [gc.isenabled(), gc.get_threshold(), gc.get_debug()],
    "modules": ["sitecustomize" in sys.modules, sys.modules.get("__mp_main__", main) is main],
    "rest": [faulthandler.is_enabled(), sys.getrecursionlimit(), sys.getswitchinterval(), os.getcwd(),
             locale.getlocale(), logging.root.handlers, logging.root.level, sys.stdout.encoding,
             str(sys.stdout.line_buffering), str(sys.stdout.write_through), os.umask(0o22)],
    "threads": [thread.name for thread in threading.enumerate() if not thread.name.startswith("heapwatch-")],
    "main thread": threading.current_thread() is threading.main_thread(),
    "docstring": [__doc__, f.__doc__] if "f" in globals() else [],
}, indent=1, default=str))
try:
    assert False
except AssertionError:
    print("asserted")
warnings.warn("a warning")
"""


@pytest.mark.parametrize(
    "arguments",
    [
        ("train.py", "--json", "-m", "x"),
        ("sub/inner.py",),
        ("package",),
        ("archive.zip", "1"),
        ("-m", "package", "-c"),
        ("-m", "package.part"),
        ("-c", SEEN, "-m", "a"),
        ("-", "a"),
        ("-u", "-O", "train.py"),
        ("-W", "error", "train.py"),
        ("-X", "dev", "-Xfaulthandler", "train.py"),
        ("-X", "utf8", "-x", "train.py"),
    ],
    ids=lambda arguments: " ".join(arguments)[:20],
)
def test_a_program_sees_the_same(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    place = folder(
        tmp_path,
        train=SEEN,
        sub___inner=SEEN,
        package_____main__=SEEN,
        package_____init__="",
        package___part=SEEN,
    )
    with zipfile.ZipFile(place / "archive.zip", "w") as archive:
        archive.writestr("__main__.py", SEEN)
    python, ours = both(place, *arguments, stdin=SEEN if "-" in arguments else "")
    assert ours == python
    assert '"is main"' in ours.said


@pytest.mark.parametrize("own", ["", "import sys; sys.own = [sys.path[:2], __name__, sys.argv]", "1 / 0"])
def test_the_path_of_the_environment_and_what_is_customized_there(tmp_path: Path, own: str) -> None:
    place = folder(tmp_path, train=SEEN + "print(getattr(sys, 'own', None))")
    (place / "lib").mkdir()
    if own:
        (place / "lib" / "sitecustomize.py").write_text(own)
    python, ours = both(place, "train.py", environment={"PYTHONPATH": "lib"})
    # The interpreter that runs `heapwatch run` imports it, too.
    failed = re.match("(Error in sitecustomize.*\n.*\n)*", ours.told)
    assert failed
    ours.told = ours.told[len(failed[0]) // 2 :]
    assert ours == python


ENDS = {
    "a code": "raise SystemExit(7)",
    "a text": "import sys; sys.exit('no data')",
    "an error": "def f():\n    raise ValueError('broken')\nf()",
    "interrupted": "raise KeyboardInterrupt",
    "at once": "import os; print('lost', end=''); os._exit(5)",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "no streams": "import sys; sys.stdout.close(); sys.stderr = None",
    "own streams": "import io, sys; sys.stdout = sys.stderr = io.StringIO(); print(1)",
    "hooks": "import sys; sys.excepthook = lambda *a: print('hook', a[0]); 1 / 0",
    "at exit": "import atexit\natexit.register(print, 'a')\natexit.register(print, 'b')\natexit.register(int, 'c')",
    "threads: one exits, one fails, one is a daemon, some are a pool, one ends later": (
        "import sys, threading, time\nfrom concurrent.futures import ThreadPoolExecutor as Pool\n"
        "for target, *given in ((sys.exit, 3), (int, 'x')):\n"
        "    t = threading.Thread(target=target, args=given, name='t'); t.start(); t.join()\n"
        "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
        "p = Pool(2); print(list(p.map(str, range(9))))\n"
        "threading.Thread(target=lambda: (time.sleep(0.3), print('later', __name__))).start()\nprint('main')"
    ),
    "a fork and a subprocess": (
        "import os, subprocess, sys\nif not os.fork(): print('child', flush=True); sys.exit(3)\n"
        "print(os.wait()[1])\nprint(subprocess.run([sys.executable, '-c', "
        "'import sys; print(sys.path[1:], sys.flags)'], capture_output=True, text=True).stdout)"
    ),
    "files and input": (
        "open('a.txt', 'w').write('unclosed'); open('b.txt', 'w').write(__file__)\nprint(input('? '), input())"
    ),
    "a finalizer": "class C:\n    def __del__(self): print('finalized')\nc = C(); c.self = c",
    "a cycle of imports, and run by runpy": (
        "import train; print(train.__name__, train is __import__('__main__'))\n"
        "import runpy; print(sorted(runpy.run_path('other.py')), runpy.run_module('other')['x'])"
    ),
}  # fmt: skip
CALLED_BY = {"files and input": "one\ntwo\n"}


@pytest.mark.parametrize("ending", ENDS)
def test_a_program_ends_the_same(tmp_path: Path, ending: str) -> None:
    place = folder(tmp_path, train=ENDS[ending], other="x = 1")
    python, ours = both(place, "train.py", stdin=CALLED_BY.get(ending, ""))
    if ending == "a finalizer":  # whether a cycle at the end is collected is up to the interpreter
        ours.said = python.said
    assert ours == python


TOOLS = {
    "pdb": ("-m", "pdb", "train.py"),
    "coverage": ("-m", "coverage", "run", "--data-file=data", "train.py"),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_run_a_program_the_same(tmp_path: Path, tool: str) -> None:
    if tool == "coverage" and importlib.util.find_spec("coverage") is None:
        pytest.skip("coverage is not installed")
    place = folder(tmp_path, train="def f(x):\n    return x + 1\nprint(f(1), __name__)\n")
    python, ours = both(place, *TOOLS[tool], stdin="b 2\nc\np x\nc\nq\nq\n" if "pdb" in tool else "exit()\n")
    for end in (python, ours):
        end.files = dict.fromkeys(end.files, b"")
    assert ours == python
    assert "2 __main__" in ours.said


WAITS = "import time\nprint('ready', flush=True)\n{}time.sleep(60)\n"
SIGNALLED = {
    "Ctrl-C": (WAITS.format(""), signal.SIGINT),
    "Ctrl-C that is caught": (
        "import time\ntry:\n    print('ready', flush=True)\n    time.sleep(60)\n"
        "except KeyboardInterrupt as error:\n    print('saved', error.__traceback__.tb_next)\n"
        "    raise SystemExit(3)",
        signal.SIGINT,
    ),
    "SIGTERM": (WAITS.format(""), signal.SIGTERM),
    "SIGTERM and all exceptions caught": (
        "import time\nprint('ready', flush=True)\nwhile True:\n    try:\n        time.sleep(60)\n"
        "    except BaseException:\n        pass",
        signal.SIGTERM,
    ),
    "SIGTERM handled": (
        "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit('saved'))\n"
        + WAITS.format(""),
        signal.SIGTERM,
    ),
    "SIGTERM ignored": (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready', flush=True)\n"
        "time.sleep(1)\nprint('on')",
        signal.SIGTERM,
    ),
    "SIGTERM and a pool that hangs": (
        "import multiprocessing, time\ndef work(x):\n    time.sleep(3)\nif __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(2) as pool:\n        print('ready', flush=True)\n"
        "        pool.map(work, [1, 2])",
        signal.SIGTERM,
    ),
    "SIGALRM": (WAITS.format(""), signal.SIGALRM),
}


@pytest.mark.parametrize("case", SIGNALLED)
def test_signals_do_the_same(tmp_path: Path, case: str) -> None:
    text, number = SIGNALLED[case]
    python, ours = both(folder(tmp_path, train=text), "train.py", send=(number,))
    if "pool" in case:  # its workers fail one after the other, in any order
        python.told = ours.told = ""
    assert ours == python
    assert ours.said.startswith("ready\n")


WORKERS = """
import concurrent.futures, multiprocessing, sys

class Episode:
    def __init__(self, reward):
        self.reward = reward
    def __eq__(self, other):
        return type(other) is Episode and self.reward == other.reward

def play(reward):
    return Episode(reward)

def report(queue):
    queue.put((Episode(7), __name__, sys.argv, multiprocessing.current_process().name))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        print(pool.map(play, range(3)) == [Episode(0), Episode(1), Episode(2)])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
        print(executor.submit(play, 5).result(timeout=60) == Episode(5))
    queue = context.Queue()
    process = context.Process(target=report, args=(queue,))
    process.start()
    episode, *rest = queue.get(timeout=60)
    process.join()
    print(episode == Episode(7), rest, process.exitcode)
    failing = context.Process(target=sys.exit, args=(3,))
    failing.start()
    failing.join()
    print(failing.exitcode)
"""


@pytest.mark.parametrize(
    "arguments",
    [("train.py", "spawn"), ("train.py", "forkserver"), ("train.py", "fork"), ("-m", "train", "spawn")],
    ids=" ".join,
)
def test_workers_exchange_objects_of_the_programs_classes(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    python, ours = both(folder(tmp_path, train=WORKERS), *arguments)
    assert ours == python
    assert ours.said.splitlines()[0] == "True"
