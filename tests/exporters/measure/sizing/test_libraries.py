"""What objects of each library hold: the bytes are known, and lie within the error that is stated."""

import io
import mmap
from array import array

import jax
import numpy as np
import pandas
import PIL.Image
import pyarrow
import pytest
import scipy.sparse
import torch

from heapwatch.measure.sizing.deep_size import deep_size

LENGTH = 250_000
OBJECTS = 8192  # bytes of Python objects that may lie around an array: wrappers, attributes, names
TEXT = "x" * 50


class OwnTensor(torch.Tensor):
    pass


def floats():
    return np.zeros(LENGTH)


def sparse(form):
    places = np.arange(LENGTH, dtype=np.int32), np.arange(LENGTH, dtype=np.int32)
    return scipy.sparse.coo_array((floats(), places), shape=(LENGTH, LENGTH)).asformat(form)


def donated():
    found = jax.numpy.zeros(LENGTH)
    found.delete()
    return found


def with_itself(obj, derive):
    return obj, derive(obj)


def tensor_dict():
    """Imported here: it takes seconds, and each worker imports this file."""
    from tensordict import TensorDict

    return TensorDict({"a": torch.zeros(LENGTH)}, [LENGTH])


HEAP = {
    "numpy, StringDType": (lambda: np.array([TEXT] * 1000, dtype=np.dtypes.StringDType()), 1000 * (16 + 51)),
    "scipy, CSR": (lambda: sparse("csr"), 12 * LENGTH + 4 * (LENGTH + 1)),
    "torch, with its autograd graph": (
        lambda: torch.zeros(LENGTH, requires_grad=True).exp().exp(),
        12 * LENGTH,
    ),
    "torch, a subclass of the program's own": (
        lambda: torch.zeros(LENGTH).as_subclass(OwnTensor),
        4 * LENGTH,
    ),
    "tensordict": (tensor_dict, 4 * LENGTH),
    "jax": (lambda: jax.numpy.zeros(LENGTH), 4 * LENGTH),
    "jax, twice on one device": (lambda: with_itself(jax.numpy.zeros(LENGTH), jax.device_put), 4 * LENGTH),
    "jax, its numpy view": (lambda: np.asarray(jax.numpy.zeros(LENGTH)), 4 * LENGTH),
    "jax, donated": (donated, 0),
    "jax, random keys": (lambda: jax.random.split(jax.random.key(0), 1000), 8 * 1000),
    "pandas, a frame": (lambda: pandas.DataFrame({"a": floats(), "b": floats()}), 16 * LENGTH),
    "pandas, ten rows": (lambda: pandas.Series(floats())[:10], 8 * LENGTH),
    "pandas, text": (lambda: pandas.Series([TEXT] * LENGTH, dtype="string[pyarrow]"), 58 * LENGTH + 8),
    "pandas, categories": (lambda: pandas.Series([TEXT] * LENGTH, dtype="category"), LENGTH),
    "pyarrow": (lambda: pyarrow.array(floats()), 8 * LENGTH),
    "pyarrow, ten elements": (lambda: pyarrow.array(floats())[:10], 8 * LENGTH),
    "pyarrow, over a numpy array": (lambda: with_itself(floats(), pyarrow.array), 8 * LENGTH),
    "pyarrow, text": (lambda: pyarrow.array([TEXT] * LENGTH), 54 * LENGTH + 4),
    "pyarrow, dictionary": (
        lambda: pyarrow.array(["a", "b"] * (LENGTH // 2)).dictionary_encode(),
        4 * LENGTH,
    ),
    "pyarrow, a table and a slice": (
        lambda: with_itself(pyarrow.table({"a": floats()}), lambda table: table.slice(5, 10)),
        8 * LENGTH,
    ),
    "array.array": (lambda: array("d", [0.0]) * LENGTH, 8 * LENGTH),
    "bytearray behind a memoryview": (lambda: memoryview(bytearray(LENGTH))[5:], LENGTH),
    "io.BytesIO": (lambda: io.BytesIO(bytes(LENGTH)), LENGTH),
    "a type without an entry": (lambda: PIL.Image.new("RGB", (500, 500)), 4 * 500 * 500),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAP)
def test_the_stated_error_covers_what_an_object_holds(name):
    make, true = HEAP[name]
    size = deep_size(make(), budget_seconds=5)

    assert -size.error_bytes <= size.bytes - true <= size.error_bytes + OBJECTS
    assert size.error_bytes > 0 or not size.unread
    assert elsewhere(size) == {}


def elsewhere(size):
    """Bytes by place, of those that are not on the heap."""
    found = {"gpu": size.gpu_bytes, "mapped": size.mapped_bytes, "shared": size.shared_bytes}
    return {place: held for place, held in found.items() if held}


def test_what_lies_in_a_file_or_in_shared_memory_is_no_heap(tmp_path):
    stored = tensor_dict().memmap(tmp_path / "dict")
    assert elsewhere(deep_size(stored, budget_seconds=5)) == {"mapped": 4 * LENGTH}

    table = pyarrow.table({"a": floats()})
    with pyarrow.ipc.new_file(tmp_path / "table", table.schema) as writer:
        writer.write_table(table)
    with pyarrow.memory_map(str(tmp_path / "table")) as file:
        loaded = pyarrow.ipc.open_file(file).read_all()
    size = deep_size(loaded, budget_seconds=5)
    assert elsewhere(size) == {"mapped": pytest.approx(8 * LENGTH, abs=1000)}
    assert size.bytes < OBJECTS

    with mmap.mmap(-1, 100 * mmap.PAGESIZE) as anonymous:
        assert elsewhere(deep_size(anonymous)) == {"shared": 100 * mmap.PAGESIZE}
