"""What is known of a class before its instances are looked at."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from heapwatch.measure.introspection.layout import layout_of


def test_a_class_without_a_module_has_a_layout() -> None:
    scope: dict[str, type] = {}
    exec("Body = type('Body', (), {})", scope)  # `type` takes the module from a `__name__` that is not there
    assert not hasattr(scope["Body"], "__module__")
    layout = layout_of(scope["Body"])
    assert layout.kind == "object"
    assert (layout.name, layout.module) == ("Body", "builtins")


def test_a_class_that_is_being_made_is_a_plain_object_until_it_is_complete():
    found = []

    class Making(type):
        def mro(cls):
            found.append(layout_of(cls).mro)
            return super().mro()

    class Made(metaclass=Making):
        pass

    assert found == [(object,)]
    assert layout_of(Made).mro == (Made, object)


class Hidden:
    __slots__ = ("__dict__", "slot")


def made() -> type:
    """A class as a program makes it while it runs."""

    class Made(Hidden):
        slot = "hides the slot of its base"

        @property
        def __dict__(self) -> dict[str, object]:
            raise AssertionError("looking runs no code of the program")

    return Made


def test_what_another_name_hides_is_read_without_running_it() -> None:
    made_now = made()()
    Hidden.slot.__set__(made_now, 1)
    made_now.own = 2
    layout = layout_of(type(made_now))
    assert layout.slots["slot"](made_now) == 1
    assert layout.namespace(made_now) == {"own": 2}


def test_what_a_base_hides_that_a_class_gets_later_is_read_without_running_it() -> None:
    class Base(Hidden):
        pass

    class Changed(Base):
        pass

    changed: Any = Changed()
    changed.slot, changed.own = 1, 2
    layout = layout_of(Changed)
    Changed.__bases__ = made(), Base
    assert layout_of(Changed) is layout
    assert layout.slots["slot"](changed) == 1
    assert layout.namespace(changed) == {"own": 2}


def test_a_class_is_not_kept_alive() -> None:
    cls = made()
    layout_of(cls)
    gone = weakref.ref(cls)
    del cls
    gc.collect()
    assert gone() is None
