"""What a function that has ended still holds: the traceback of a kept exception refers to its frame."""

from __future__ import annotations

import gc
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any


def held_by_ended(frame: FrameType) -> list[Any]:
    """The local variables of a function that has ended; nothing of one that runs.

    From Python 3.11 on the interpreter lists them for the collector only once the function has ended. Neither
    the globals nor the calling frame are among them. Before 3.11 a suspended generator's are listed, too.
    """
    if sys.version_info < (3, 11) and _is_running(frame):
        return []
    names = (frame.f_globals, frame.f_builtins)
    return [
        part
        for part in gc.get_referents(frame)
        if type(part) not in (FrameType, CodeType)
        and not any(part is namespace for namespace in names)
        and not (type(part) is FunctionType and part.__code__ is frame.f_code)
    ]


def _is_running(frame: FrameType) -> bool:
    for innermost in sys._current_frames().values():
        current: FrameType | None = innermost
        del innermost  # it may be this function's own, which then would hold itself
        while current is not None:
            if current is frame:
                return True
            current = current.f_back
    return False
