"""What is known of a class before its instances are looked at."""

from __future__ import annotations

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
