import sys

import jax
import pytest

from heapwatch.analysis.readings import Readings
from heapwatch.collectors.compiled import CompiledCollector


def programs():
    return Readings(CompiledCollector().collect()).value("trainer_jax_compiled_programs")


def test_each_new_shape_is_a_program_more():
    step = jax.jit(lambda values: values * 2 + 1)
    step(jax.numpy.zeros(3))
    before = programs()
    arrays = [jax.numpy.zeros(length) for length in range(4, 14)]
    made = programs()
    assert made > before
    for array in arrays:
        step(array)
    assert programs() == made + 10
    for array in arrays:
        step(array)
    assert programs() == made + 10


@pytest.mark.parametrize("backends", [None, {}])
def test_without_a_backend_there_is_no_series(monkeypatch, backends):
    if backends is None:
        monkeypatch.delitem(sys.modules, "jax._src.xla_bridge")
    else:
        monkeypatch.setattr(sys.modules["jax._src.xla_bridge"], "_backends", backends)

    assert programs() is None
