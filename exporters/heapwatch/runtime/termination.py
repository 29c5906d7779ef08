"""Runs functions such as writing results before SIGTERM ends the process."""

from __future__ import annotations

import _thread
import ctypes
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from heapwatch.measure.introspection.exclusive_reads import waits_in
from heapwatch.measure.introspection.roots import OWN_THREADS

_signal_of = ctypes.pythonapi.PyOS_getsig  # the operating system's handler of a signal
_signal_of.restype = ctypes.c_void_p
# Like `signal.signal`, which only the main thread may call.
_set_signal = ctypes.pythonapi.PyOS_setsig
_set_signal.argtypes, _set_signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
LAST_SECONDS = 2.0
_POLL_SECONDS = 0.02
_CREDENTIALS = struct.Struct("3i")  # pid, user and group of a sender: `struct ucred` in unix(7)


class Termination:
    """Calls the functions `before_end`, for at most `seconds`, before SIGTERM ends the process.

    A handler that the program installs later replaces this one. A separate thread calls the functions, one
    after the other: the main thread may hold locks when the signal arrives, or be inside C code. The
    interpreter's C handler wakes that thread by a byte in a socket (`signal.set_wakeup_fd`). The program's
    objects are alive meanwhile.
    """

    def __init__(self, before_end: list[Callable[[], object]], seconds: float = LAST_SECONDS) -> None:
        self.before_end = before_end
        self._seconds = seconds
        self._process = 0
        self._handler: int | None = None
        self._forking = self._is_signalled = self._is_done = False

    def install(self) -> bool:
        """Handle SIGTERM from now on; returns whether it is handled.

        Does nothing if the program handles or ignores SIGTERM, or if the caller is not the main thread.

        Raises:
            RuntimeError: no further thread can be started.

        """
        if self._process == os.getpid():
            return True
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            return False
        waker, woken = socket.socketpair()
        waker.setblocking(False)
        if hasattr(socket, "SO_PASSCRED"):
            woken.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._waker, self._woken = waker, woken
        try:
            signal.signal(signal.SIGTERM, self._handle)
        except ValueError:  # not the main thread
            waker.close()
            woken.close()
            return False
        self._process, self._handler = os.getpid(), _signal_of(signal.SIGTERM)
        if (previous := signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)) != -1:
            signal.set_wakeup_fd(previous)
        try:
            threading.Thread(
                target=self._wait_and_finish, name=f"{OWN_THREADS}termination", daemon=True
            ).start()
        except RuntimeError:
            self.abandon()
            raise
        return True

    def before_fork(self) -> None:
        """Restore the default action of SIGTERM before a fork, so that it ends a new child at once.

        Before its fork hooks run, the child's interpreter discards pending signals. A pool that
        is closed early terminates new workers and waits for them. Until `after_fork`, SIGTERM also ends the
        parent at once.
        """
        if self._process and _signal_of(signal.SIGTERM) == self._handler and self._is_installed():
            _set_signal(signal.SIGTERM, None)
            self._forking = True  # set last: another thread's fork may end in between

    def after_fork(self) -> None:
        """Handle SIGTERM again in the parent, also after a failed fork, unless the program handles it now."""
        if not self._forking:
            return
        self._forking = False
        if not _signal_of(signal.SIGTERM) and self._is_installed() and not self._is_done:
            _set_signal(signal.SIGTERM, self._handler)

    def abandon(self) -> None:
        """Restore SIGTERM in a forked child and close its copy of the parent's socket."""
        if not self._process:
            return
        self._process, self._forking = 0, False
        with suppress(ValueError):
            if self._is_installed():
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            if (wakeup := signal.set_wakeup_fd(-1)) != self._waker.fileno():
                signal.set_wakeup_fd(wakeup)
        self._waker.close()
        self._woken.close()

    def _handle(self, number: int, _frame: object) -> None:
        """The Python signal handler; runs in the main thread between two byte codes."""
        if not self._is_installed():
            return  # called by the handler of the program that replaced this one
        signal.signal(number, signal.SIG_DFL)  # a second SIGTERM ends the process at once
        if os.getpid() == self._process:  # not in a child whose fork hooks have not run yet
            self._is_signalled = True
            with suppress(OSError):
                self._waker.send(bytes([number]))
            deadline = time.monotonic() + self._seconds + 1.0
            while not self._is_done and time.monotonic() < deadline:
                time.sleep(_POLL_SECONDS)
        os.kill(os.getpid(), number)

    def _is_installed(self) -> bool:
        return signal.getsignal(signal.SIGTERM) == self._handle

    def _wait_and_finish(self) -> None:
        try:
            while not self._receive_sigterm():
                pass
        except OSError:  # the program has closed files that are not its own
            return
        finished = _thread.allocate_lock()
        finished.acquire(blocking=False)
        try:
            _thread.start_new_thread(self._run_functions, (finished.release,))
            finished.acquire(timeout=self._seconds)
        except RuntimeError:  # as at the end of Python 3.12.0 to 3.12.2; `_handle` keeps the time
            self._run_functions(finished.release)
        self._is_done = True
        _set_signal(signal.SIGTERM, None)
        os.kill(os.getpid(), signal.SIGTERM)

    @waits_in
    def _receive_sigterm(self) -> bool:
        """Wait for the next signal; returns whether it is a SIGTERM of this process. Raises OSError."""
        byte, ancillary, _, _ = self._woken.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        # A child in which no fork hook has run writes to the socket of its parent.
        senders = [_CREDENTIALS.unpack(data)[0] for _, _, data in ancillary]
        if not byte:
            raise ConnectionResetError
        return byte == bytes([signal.SIGTERM]) and (
            all(sender == os.getpid() for sender in senders) and (self._is_signalled or self._is_installed())
        )

    def _run_functions(self, finish: Callable[[], None]) -> None:
        try:
            for function in self.before_end:
                with suppress(Exception):
                    function()
        finally:
            finish()
