"""Running a program in this process as Python itself would."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType, ModuleType
from typing import Any, NoReturn

import psutil

_GRACE_SECONDS = 10.0
# As a shell reports a program that SIGINT or SIGTERM ended.
_INTERRUPTED = 130
_TERMINATED = 143
_RESULT_SECONDS = 10.0


class CannotRun(Exception):
    """The program cannot be run; the message says why."""


class TimeIsUp(SystemExit):
    """Raised in the main thread to end the program, so that its `finally` blocks run."""


class Terminated(SystemExit):
    """Raised in the main thread when the program gets SIGTERM, so that its `finally` blocks run."""


@dataclass(frozen=True)
class ProgramEnd:
    """How a program ended: exit code, result of `before_end`, whether its threads may still run."""

    code: int
    result: object = None
    cut_short: bool = False

    def leave(self) -> None:
        """End the process at once if the program was cut short: its threads may never end by themselves."""
        if self.cut_short:
            sys.stdout.flush()
            sys.stderr.flush()
            _end_children()
            os._exit(self.code)


class Program:
    """A script, a folder or archive with a `__main__.py`, or a module.

    Args:
        arguments: the program and its own arguments.
        module: whether the first argument is the name of a module.

    Raises:
        CannotRun: it does not exist or does not compile.

    """

    def __init__(self, arguments: Sequence[str], *, module: bool) -> None:
        if not arguments:
            raise CannotRun("run needs a script, or -m and a module")
        self.name = arguments[0] if module else os.path.splitext(os.path.basename(arguments[0]))[0]
        self._arguments = list(arguments)
        self._spec: importlib.machinery.ModuleSpec | None = None
        if module:
            sys.path[0] = os.getcwd()
            self._spec, self._code = _module(arguments[0])
            self._file = self._spec.origin or arguments[0]
        else:
            self._file = os.path.abspath(arguments[0])
            self._code = _script(arguments[0])
            folder = os.path.realpath(self._file)
            sys.path[0] = folder if os.path.isdir(folder) else os.path.dirname(folder)

    def run(self, seconds: float | None, before_end: Callable[[], object]) -> ProgramEnd:
        """Run it to its end, or for a limited time.

        Args:
            seconds: time after which the program is stopped; None: never.
            before_end: called when the time is up, or on Ctrl-C or SIGTERM unless the program handles these,
                while the program's objects are still alive.

        """
        module = ModuleType("__main__")
        names = {"__file__": self._file, "__builtins__": __builtins__, "__cached__": None}
        vars(module).update(names, __spec__=self._spec)
        if self._spec is not None:
            vars(module).update(__package__=self._spec.parent, __loader__=self._spec.loader)
        sys.argv = [self._file if self._spec else self._arguments[0], *self._arguments[1:]]
        own_main = sys.modules["__main__"]
        sys.modules["__main__"] = module
        timer = None if seconds is None else _Timer(seconds, before_end)
        process = os.getpid()
        signals = _Signals(before_end)
        try:
            code = self._execute(vars(module), timer)
        finally:
            if os.getpid() == process:
                signals.restore()
                if timer is not None:
                    timer.cancel()
        if isinstance(sys.modules, dict):
            # Keeps the objects of the program alive until they are explained.
            sys.modules["__heapwatch_main__"] = own_main
        if timer is not None and timer.rang:
            return ProgramEnd(0, timer.result, cut_short=True)
        return ProgramEnd(code, signals.result, cut_short=signals.terminated and code == _TERMINATED)

    def _execute(self, namespace: dict[str, Any], timer: _Timer | None) -> int:
        try:
            if timer is not None:
                timer.start()
            exec(self._code, namespace)
            _join_threads()
        except TimeIsUp:
            return 0
        except SystemExit as exit_:
            return _exit_code(exit_.code)
        except KeyboardInterrupt:
            traceback.print_exc()
            return _INTERRUPTED
        except BaseException as error:
            # Without the frames of this file, as Python itself would print it.
            frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
            traceback.print_exception(type(error), error, frames)
            return 1
        return 0


class _Signals:
    """Explains the program before Ctrl-C or SIGTERM unwinds its frames, which then hold nothing any more.

    A handler that the program installs replaces these. Child processes get the default handlers.
    """

    def __init__(self, before_end: Callable[[], object]) -> None:
        self.result: object = None
        self.terminated = False
        self._before_end = before_end
        self._process = os.getpid()
        self._replaced: dict[int, Any] = {}
        for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
            if signal.getsignal(number) is usual:
                self._replaced[number] = usual
                signal.signal(number, self._end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.restore)

    def restore(self) -> None:
        """Restore the usual handlers, unless the program has replaced these."""
        for number, usual in self._replaced.items():
            if signal.getsignal(number) == self._end:
                signal.signal(number, usual)

    def _end(self, number: int, _frame: object) -> NoReturn:
        self.restore()  # a second signal ends it at once
        if os.getpid() != self._process:  # forked a moment ago
            os.kill(os.getpid(), number)
            time.sleep(_RESULT_SECONDS)
        # In a thread, because this one may hold any lock.
        thread = threading.Thread(target=self._explain, name="heapwatch-before-end", daemon=True)
        thread.start()
        thread.join(_RESULT_SECONDS)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        self.terminated = True
        raise Terminated(_TERMINATED)

    def _explain(self) -> None:
        self.result = self._before_end()


class _Timer:
    """Stops the program when its time is up, by an exception in the main thread."""

    def __init__(self, seconds: float, before_end: Callable[[], object]) -> None:
        self.rang = False
        self.result: object = None
        self._seconds = seconds
        self._before_end = before_end
        self._cancelled = threading.Event()
        self._main = threading.main_thread().ident
        self._can_signal = hasattr(signal, "SIGALRM")

    def start(self) -> None:
        if self._can_signal:
            signal.signal(signal.SIGALRM, _raise_time_is_up)
        threading.Thread(target=self._wait, name="heapwatch-timer", daemon=True).start()

    def cancel(self) -> None:
        self._cancelled.set()

    def _wait(self) -> None:
        if self._cancelled.wait(self._seconds):
            return
        self.result = self._before_end()
        self.rang = True
        if self._can_signal and self._main is not None:
            signal.pthread_kill(self._main, signal.SIGALRM)
        else:
            import _thread

            _thread.interrupt_main()


def _raise_time_is_up(*_arguments: object) -> NoReturn:
    raise TimeIsUp(0)


def _script(file: str) -> CodeType:
    path = os.path.join(file, "__main__.py") if os.path.isdir(file) else file
    try:
        with io.open_code(path) as source:
            return compile(source.read(), os.path.abspath(path), "exec", dont_inherit=True)
    except OSError as error:
        raise CannotRun(f"cannot open {file!r}: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        raise CannotRun(f"{file!r} is not a Python program: {error}") from None


def _module(name: str) -> tuple[importlib.machinery.ModuleSpec, CodeType]:
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
    except (ImportError, ValueError, AttributeError) as error:
        raise CannotRun(f"no module {name!r}: {error}") from None
    code = None if spec is None or spec.loader is None else _code_of(spec)
    if spec is None or code is None:
        raise CannotRun(f"no module {name!r} that can be run")
    return spec, code


def _code_of(spec: importlib.machinery.ModuleSpec) -> CodeType | None:
    try:
        code: CodeType | None = spec.loader.get_code(spec.name)  # type: ignore[union-attr]
    except (ImportError, SyntaxError, AttributeError) as error:
        raise CannotRun(f"module {spec.name!r} cannot be run: {error}") from None
    return code


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _join_threads() -> None:
    """Wait for the program's threads, as the interpreter does at its end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _end_children() -> None:
    try:
        children = psutil.Process().children(recursive=True)
    except psutil.Error:
        return
    for child in children:
        try:
            child.terminate()
        except psutil.Error:
            continue
