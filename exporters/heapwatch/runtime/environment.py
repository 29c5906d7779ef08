"""Names of the `HEAPWATCH_*` environment variables, and functions that read them.

In a trainer an invalid value never raises: it is logged once and the default is used.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping

from heapwatch.text.terminal import plain

log = logging.getLogger("heapwatch")

PREFIX = "HEAPWATCH_"
RECEIVER_PREFIX = "HEAPWATCH_RECEIVER_"
EXPLAIN, TRACE, SERVE, WORKERS = (f"{PREFIX}{name}" for name in ("EXPLAIN", "TRACE", "SERVE", "WORKERS"))
RUN = f"{PREFIX}RUN"  # the options of `heapwatch run`, as JSON
TRAINER_PORT = f"{PREFIX}TRAINER_PORT"
# Variables of the stack, the library and the viewer; those of the receiver come from its settings.
_NAMES = """
    ALERTMANAGER_PORT ALERTMANAGER_URL ALLOWED_HOSTS BIND CHECKOUT DASHBOARDS_PORT EXPLAIN
    NOTIFICATIONS_FILE PROFILE PROMETHEUS_PORT PROMETHEUS_URL RECEIVER_CONFIG RECEIVER_PORT RECORD
    RUN SERVE STATE TARGETS_DIR TOKEN TOKEN_FILE TRACE TRAINER_PORT WORKERS
"""
KNOWN = frozenset(PREFIX + name for name in _NAMES.split())
_OFF, _ON = ("0", "off", "no", "false"), ("", "1", "on", "yes", "true")

_said: set[str] = set()


def is_on(name: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether the variable leaves a part on, as it is by default."""
    text = environ.get(name, "").strip().lower()
    if text not in (*_OFF, *_ON):
        _log_invalid(name, environ[name], "on or off", "it stays on")
    return text not in _OFF


def trainer_port() -> int | None:
    """HEAPWATCH_TRAINER_PORT; None if it is not set. Raises ValueError if it is no port."""
    text = os.environ.get(TRAINER_PORT)
    if not text:
        return None
    if not (text.isdecimal() and len(text) <= 5 and int(text) <= 65535):
        raise ValueError(f"{TRAINER_PORT} must be a port, 0 to 65535, got {text[:40]!r}")
    return int(text)


def choice(name: str, allowed: Collection[str], usual: str) -> str:
    """The value of a variable that is one of `allowed`, else `usual`."""
    text = os.environ.get(name, "")
    if text and text not in allowed:
        _log_invalid(name, text, ", ".join(allowed), f"{usual} is used")
    return text if text in allowed else usual


def unread(environ: Mapping[str, str] = os.environ, more: Collection[str] = ()) -> str | None:
    """One line about the first unknown variable, with the most similar known name; None if all are known.

    `more` are further known names. Without it, variables of the receiver are not checked.
    """
    known_names = KNOWN | set(more)
    for name in sorted(name for name in environ if name.startswith(PREFIX) and name not in known_names):
        if more or not name.startswith(RECEIVER_PREFIX):
            import difflib  # needed for a misspelt name only

            matches = difflib.get_close_matches(name, sorted(known_names), n=1, cutoff=0)
            return f"nothing reads {plain(name, 100)}; did you mean {matches[0]}? (or unset it)"
    return None


def say_once(message: str) -> None:
    """Log a warning about the environment once in this process."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", plain(message))


def _log_invalid(name: str, text: str, allowed: str, consequence: str) -> None:
    say_once(f"{name} is {plain(repr(text), 80)}, allowed is {allowed}; {consequence}")
