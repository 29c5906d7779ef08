"""Whether a thread is in a call of `time.sleep`, by the instruction that it is at.

A thread that is inside C code is at the instruction that called it. So what it is in is certain where this
instruction calls a function that can be told from the byte code alone: `time.sleep(...)` or `sleep(...)`, of
global names. The places of instructions in the source, by which the name and the call are put together, exist
since Python 3.11.
"""

from __future__ import annotations

import dis
import sys
import time
from types import CodeType, ModuleType
from typing import Any

_MOST_KNOWN = 1000
_HAVE_PLACES = sys.version_info >= (3, 11)
_FUNCTIONS = {"sleep": time.sleep}
_CALLS = ("CALL", "PRECALL")  # Python 3.11 calls what it knows well from the instruction before

# By the id of the code, which is kept so that no other takes its id.
_names: dict[tuple[int, int], tuple[CodeType, tuple[str, ...]]] = {}


def in_waiting_call(code: CodeType, at: int, namespace: dict[str, Any]) -> bool:
    """Whether the instruction at this offset of a function with these global names calls `time.sleep`."""
    names = _called_at(code, at)
    if not names or names[-1] not in _FUNCTIONS:
        return False
    found: Any = namespace.get(names[0])
    if len(names) == 2:
        found = vars(found).get(names[1]) if type(found) is ModuleType else None
    return found is _FUNCTIONS[names[-1]]


def _called_at(code: CodeType, at: int) -> tuple[str, ...]:
    """The global name that an instruction calls, `(module, name)` or `(name,)`; empty for any other."""
    if not _HAVE_PLACES:
        return ()
    key = id(code), at
    if key not in _names:
        if len(_names) >= _MOST_KNOWN:
            _names.clear()
        _names[key] = code, _read(code, at)
    return _names[key][1]


def _read(code: CodeType, at: int) -> tuple[str, ...]:
    instructions = list(dis.get_instructions(code))
    call = next((one for one in instructions if one.offset == at and one.opname.startswith(_CALLS)), None)
    if call is None or (begin := _begin(call)) is None:
        return ()
    together = [one for one in instructions if _begin(one) == begin]
    if sum(one.opname.startswith("CALL") for one in together) != 1:
        return ()  # what is called is itself the result of a call
    loads = [one for one in together if one.opname.startswith("LOAD_")]
    names = [str(one.argval) for one in loads]
    if not loads or not loads[0].opname.startswith(("LOAD_GLOBAL", "LOAD_NAME")) or len(names) > 2:
        return ()
    return tuple(names)


def _begin(instruction: Any) -> tuple[int, int] | None:
    place = instruction.positions
    if place is None or place.lineno is None or place.col_offset is None:
        return None
    return place.lineno, place.col_offset
