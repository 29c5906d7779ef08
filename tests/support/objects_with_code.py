"""Objects whose every bit of code fails the test that lets it run."""

from __future__ import annotations

import traceback
from collections import OrderedDict, deque
from typing import Any

CALLS: list[str] = []
ARMED = [False]


def _trap(name: str, answer: Any = None) -> Any:
    def trapped(self: Any, *arguments: Any, **named: Any) -> Any:
        if ARMED[0]:
            CALLS.append(f"{name} from {traceback.format_stack()[-2]}")
            raise RuntimeError(name)
        return answer

    return trapped


class OwnMeta(type):
    __getattribute__ = type.__getattribute__
    __eq__ = _trap("meta __eq__", True)  # type: ignore[assignment]
    __instancecheck__ = _trap("meta __instancecheck__", False)
    __subclasscheck__ = _trap("meta __subclasscheck__", False)
    __len__ = _trap("meta __len__", 0)
    __bool__ = _trap("meta __bool__", True)

    def __hash__(cls) -> int:
        if ARMED[0]:
            CALLS.append("meta __hash__")
        return 7

    @property
    def __module__(cls) -> str:  # type: ignore[override]
        if ARMED[0]:
            CALLS.append("meta __module__")
        return "somewhere"


def _members() -> dict[str, Any]:
    answers = {
        "__getattr__": None, "__len__": 3, "__iter__": None, "__eq__": True, "__bool__": True,
        "__contains__": False, "__getitem__": None, "__repr__": "", "__str__": "", "__sizeof__": 32,
        "__reversed__": None, "__index__": 0, "keys": (), "values": (), "items": (), "shape": (), "nbytes": 0,
    }  # fmt: skip
    members: dict[str, Any] = {name: _trap(name, answer) for name, answer in answers.items()}

    def getattribute(self: Any, name: str) -> Any:
        if ARMED[0]:
            CALLS.append(f"__getattribute__ {name}")
            raise RuntimeError(name)
        return object.__getattribute__(self, name)

    def hashed_as(self: Any) -> int:
        if ARMED[0]:
            CALLS.append("__hash__")
        return 1

    members["__getattribute__"] = getattribute
    members["__hash__"] = hashed_as
    for name in ("__class__", "trap"):
        members[name] = property(_trap(f"property {name}"))
    return members


Plain = OwnMeta("Plain", (), _members())
Slotted = OwnMeta("Slotted", (), {**_members(), "__slots__": ("left", "right")})
HiddenDict = type("HiddenDict", (), {**_members(), "__dict__": property(_trap("property __dict__"))})
OwnList = type("OwnList", (list,), _members())
OwnDict = type("OwnDict", (dict,), _members())
OwnOrdered = type("OwnOrdered", (OrderedDict,), _members())
OwnDeque = type("OwnDeque", (deque,), _members())
OwnSet = type("OwnSet", (set,), _members())
OwnText = type("OwnText", (str,), _members())
OwnBytes = type("OwnBytes", (bytearray,), _members())
