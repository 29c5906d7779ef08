"""The variables `HEAPWATCH_*`: their names, and the values of those that a trainer reads.

A wrong value in the environment of a trainer is logged once, and the default is used: it never raises.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping

from heapwatch.text.terminal import plain

log = logging.getLogger("heapwatch")

PREFIX = "HEAPWATCH_"
RECEIVER_PREFIX = "HEAPWATCH_RECEIVER_"
EXPLAIN, TRACE, NATIVE, SERVE, WORKERS = (
    f"{PREFIX}{name}" for name in ("EXPLAIN", "TRACE", "NATIVE", "SERVE", "WORKERS")
)
RUN = f"{PREFIX}RUN"  # what `heapwatch run` was asked for, as JSON
TRAINER_PORT = f"{PREFIX}TRAINER_PORT"
# Variables of the stack, the library and the viewer; those of the receiver come from its settings.
_NAMES = """
    ALERTMANAGER_PORT ALERTMANAGER_URL ALLOWED_HOSTS BIND CHECKOUT DASHBOARDS_PORT EXPLAIN NATIVE
    NOTIFICATIONS_FILE PROFILE PROMETHEUS_PORT PROMETHEUS_URL RECEIVER_CONFIG RECEIVER_PORT RECORD
    RUN SERVE STATE TARGETS_DIR TOKEN TOKEN_FILE TRACE TRAINER_PORT WORKERS
"""
KNOWN = frozenset(PREFIX + name for name in _NAMES.split())
_OFF, _ON = ("0", "off", "no", "false"), ("", "1", "on", "yes", "true")

_said: set[str] = set()


def is_on(name: str, environ: Mapping[str, str] = os.environ, *, usual: bool = True) -> bool:
    """Whether a part is switched on, or is so by default and not switched off."""
    text = environ.get(name, "").strip().lower()
    if text not in (*_OFF, *_ON):
        _say_wrong(name, environ[name], "on or off", f"it stays {'on' if usual else 'off'}")
        return usual
    return text not in _OFF if text else usual


def trainer_port() -> int | None:
    """HEAPWATCH_TRAINER_PORT; None if it is not set. Raises ValueError if it is no port."""
    text = os.environ.get(TRAINER_PORT)
    if not text:
        return None
    if not (text.isdecimal() and len(text) <= 5 and int(text) <= 65535):
        raise ValueError(f"{TRAINER_PORT} must be a port, 0 to 65535, got {text[:40]!r}")
    return int(text)


def choice(name: str, allowed: Collection[str], usual: str, environ: Mapping[str, str] = os.environ) -> str:
    """The value of a variable that is one of `allowed`, else `usual`."""
    text = environ.get(name, "")
    if text and text not in allowed:
        _say_wrong(name, text, ", ".join(allowed), f"{usual} is used")
    return text if text in allowed else usual


def unread(environ: Mapping[str, str] = os.environ, more: Collection[str] = ()) -> str | None:
    """One line about the first variable that nothing reads, with the nearest known name; None without one.

    Without `more` names that are known, those of the receiver are not checked.
    """
    known = KNOWN | set(more)
    for name in sorted(name for name in environ if name.startswith(PREFIX) and name not in known):
        if more or not name.startswith(RECEIVER_PREFIX):
            import difflib  # for a mistake alone

            near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0)
            return f"nothing reads {plain(name, 100)}; did you mean {near[0]}? (or unset it)"
    return None


def say_once(message: str) -> None:
    """Log a warning about the environment, the first time that it is said in this process."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", plain(message))


def _say_wrong(name: str, text: str, allowed: str, instead: str) -> None:
    say_once(f"{name} is {plain(repr(text), 80)}, allowed is {allowed}; {instead}")
