"""SIGTERM, with which schedulers end a run: what is known is written first, then it ends as it would have."""

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

_signal_of = ctypes.pythonapi.PyOS_getsig  # what handles a signal, for the system
_signal_of.restype = ctypes.c_void_p
# What `signal.signal` does, which only the main thread may call.
_set_signal = ctypes.pythonapi.PyOS_setsig
_set_signal.argtypes, _set_signal.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
LAST_SECONDS = 2.0
_POLL_SECONDS = 0.02
_CREDENTIALS = struct.Struct("3i")  # of the sender of a byte: its pid, user and group


class Termination:
    """Calls `before_end`, for two seconds at most, where SIGTERM would end the process at once.

    A handler of the program's own takes the place of this one and decides alone. A thread does the work: the
    main thread may hold any lock when the signal comes, or not come back from C code. The interpreter's
    handler, which runs in either case, tells the thread by a byte in a socket (`signal.set_wakeup_fd`).
    The functions are called one after the other, while the program's objects are alive.
    """

    def __init__(self, before_end: list[Callable[[], object]], seconds: float = LAST_SECONDS) -> None:
        self.before_end = before_end
        self._seconds = seconds
        self._process = 0
        self._handler: int | None = None
        self._forking = self._taken = self._written = False

    def install(self) -> bool:
        """Handle SIGTERM from now on; returns whether it is handled.

        It is not where the program handles or ignores it, nor when another thread than the main one calls.

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
        if (others := signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)) != -1:
            signal.set_wakeup_fd(others)
        try:
            threading.Thread(target=self._work, name=f"{OWN_THREADS}termination", daemon=True).start()
        except RuntimeError:
            self.abandon()
            raise
        return True

    def before_fork(self) -> None:
        """Let SIGTERM end a child from its first moment.

        The interpreter drops what it handles before its own hooks have run in the child. A pool that is left
        at once ends workers that have just been forked, and waits for them. A SIGTERM for the parent ends it
        at once, too, if it comes meanwhile.
        """
        if self._process and _signal_of(signal.SIGTERM) == self._handler and self._is_installed():
            _set_signal(signal.SIGTERM, None)
            self._forking = True  # in this order: the end of another thread's fork may come in between

    def after_fork(self) -> None:
        """In the parent, also when it could not be forked: handle SIGTERM again, unless others do by now."""
        if not self._forking:
            return
        self._forking = False
        if not _signal_of(signal.SIGTERM) and self._is_installed() and not self._written:
            _set_signal(signal.SIGTERM, self._handler)

    def abandon(self) -> None:
        """In a forked child: SIGTERM is as it was, and the socket is the parent's."""
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
        """Runs in the main thread, between two of its instructions."""
        if not self._is_installed():
            return  # called by the program's handler, which has taken this one's place
        signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
        if os.getpid() == self._process:  # otherwise forked a moment ago
            self._taken = True
            with suppress(OSError):
                self._waker.send(bytes([number]))
            until = time.monotonic() + self._seconds + 1.0
            while not self._written and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
        os.kill(os.getpid(), number)

    def _is_installed(self) -> bool:
        return signal.getsignal(signal.SIGTERM) == self._handle

    def _work(self) -> None:
        try:
            while not self._is_asked():
                pass
        except OSError:  # the program has closed files that are not its own
            return
        done = _thread.allocate_lock()
        done.acquire(blocking=False)
        try:
            _thread.start_new_thread(self._write, (done.release,))
            done.acquire(timeout=self._seconds)
        except RuntimeError:  # as at the end of Python 3.12.0 to 3.12.2; `_handle` keeps the time
            self._write(done.release)
        self._written = True
        _set_signal(signal.SIGTERM, None)
        os.kill(os.getpid(), signal.SIGTERM)

    @waits_in
    def _is_asked(self) -> bool:
        """Wait for the next signal; returns whether it is for this to answer. Raises OSError."""
        byte, ancillary, _, _ = self._woken.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        # A child that runs no Python before it ends, or not yet, has the socket of its parent.
        senders = [_CREDENTIALS.unpack(data)[0] for _, _, data in ancillary]
        if not byte:
            raise ConnectionResetError
        return byte == bytes([signal.SIGTERM]) and (
            all(sender == os.getpid() for sender in senders) and (self._taken or self._is_installed())
        )

    def _write(self, done: Callable[[], None]) -> None:
        try:
            for function in self.before_end:
                with suppress(Exception):
                    function()
        finally:
            done()
