"""Whether the program has audit hooks, which run its code inside calls of `gc.get_referents` or `id`."""

from __future__ import annotations

import sys

_DEEPEST = 5000
_FRAMES_APART = sys.version_info >= (3, 11)  # before, deep recursion needs the stack of C


def may_have_audit_hooks() -> bool:
    """Whether a hook of `sys.addaudithook` written in Python would run; False on 3.10, which cannot tell.

    The interpreter does not list its hooks. But at the end of the stack of Python functions no hook can be
    called any more, and `sys.audit` fails if there is one.
    """
    if not _FRAMES_APART:
        return False
    return sys.getrecursionlimit() > _DEEPEST or _at_the_end()


def _at_the_end() -> bool:
    try:
        return _at_the_end()
    except RecursionError:
        pass
    try:
        sys.audit("heapwatch.probe")
    except RecursionError:
        return True
    return False
