"""What arrays of each library hold, what is reported, and the error that is stated.

Each case makes an object of which the bytes are known, because they were chosen. `make exactness` writes
docs/exactness.md, and exits with 1 when one lies outside its bound.
"""

from __future__ import annotations

import importlib.metadata
import io
import mmap
import sys
import tempfile
from array import array
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Any

from benchmarks.measure import Table
from benchmarks.running import ROOT
from heapwatch.measure.sizing.deep_size import Size, deep_size

LENGTH = 250_000
OBJECTS = 8192  # bytes of Python objects that may lie around an array: wrappers, attributes, names
DOCUMENT = ROOT / "docs" / "exactness.md"
_files = ExitStack()  # what a case leaves until it has been measured
LIBRARIES = ("numpy", "torch", "tensordict", "jax", "pandas", "pyarrow", "polars", "scipy", "pillow")


@dataclass(frozen=True)
class Case:
    """An object, and the bytes that it holds in one place: `heap`, `gpu`, `mapped` or `shared`."""

    name: str
    make: Callable[[], Any]
    true: int
    place: str = "heap"

    def row(self) -> Row:
        """Measure the object."""
        with _files:
            return Row(self.name, self.true, self.place, deep_size(self.make(), budget_seconds=5))


@dataclass(frozen=True)
class Row:
    """What was found of one case."""

    name: str
    true: int
    place: str
    size: Size

    @property
    def ours(self) -> dict[str, int]:
        """The bytes that were found, by place."""
        size = self.size
        return {
            "heap": size.bytes,
            "gpu": size.gpu_bytes,
            "mapped": size.mapped_bytes,
            "shared": size.shared_bytes,
        }

    @property
    def holds(self) -> bool:
        """Whether the truth is within the error that is stated; only that of the heap has one."""
        ours, true = self.ours, dict.fromkeys(self.ours, 0) | {self.place: self.true}
        over, error = ours.pop("heap") - true.pop("heap"), self.size.error_bytes
        return ours == true and -error <= over <= error + OBJECTS

    def cells(self) -> list[str]:
        """The row of the table."""
        error = "all that is resident" if self.size.unread else f"{self.size.error_bytes:,}"
        within = "yes" if self.holds else "**NO**"
        return [self.name, self.place, f"{self.true:,}", f"{self.ours[self.place]:,}", error, within]


def cases() -> list[Case]:
    return [*_numpy(), *_torch(), *_jax(), *_tables(), *_arrow(), *_polars(), *_others()]


def _numpy() -> list[Case]:
    import numpy as np

    class Doubling(np.ndarray[Any, Any]):
        @property
        def nbytes(self) -> int:
            return 2 * int(super().nbytes)

    def in_file() -> Any:
        folder = _files.enter_context(tempfile.TemporaryDirectory())
        return np.memmap(Path(folder) / "array", dtype=np.float64, mode="w+", shape=(LENGTH,))[5:]

    def shared() -> Any:
        memory = SharedMemory(create=True, size=mmap.PAGESIZE * 100)
        _files.callback(memory.unlink)
        return np.ndarray((100,), buffer=memory.buf)

    def masked() -> Any:
        return np.ma.masked_array(np.zeros(LENGTH), mask=np.zeros(LENGTH, dtype=bool))

    def sparse(form: str) -> Callable[[], Any]:
        def make() -> Any:
            import scipy.sparse

            places = np.arange(LENGTH, dtype=np.int32), np.arange(LENGTH, dtype=np.int32)
            entries = scipy.sparse.coo_array((np.zeros(LENGTH), places), shape=(LENGTH, LENGTH))
            return entries.asformat(form)

        return make

    texts, strings = ["x" * 50] * 1000, np.dtypes.StringDType()
    items = [bytes(1000) for _ in range(2)]
    return [
        Case("numpy.ndarray", lambda: np.zeros(LENGTH), 8 * LENGTH),
        Case("numpy.ndarray, ten elements of it", lambda: np.zeros(LENGTH)[:10][2:], 8 * LENGTH),
        Case("numpy.ndarray and two views", lambda: (a := np.zeros(LENGTH), a[:9], a[5:]), 8 * LENGTH),
        Case(
            "numpy.ndarray of objects",
            lambda: np.array(items, dtype=object),
            16 + sum(map(sys.getsizeof, items)),
        ),
        Case("numpy.ndarray of StringDType", lambda: np.array(texts, dtype=strings), 1000 * (16 + 50 + 1)),
        Case(
            "numpy.ndarray, subclass that overrides nbytes",
            lambda: np.zeros(LENGTH).view(Doubling),
            8 * LENGTH,
        ),
        Case("numpy.ma.MaskedArray", masked, 9 * LENGTH),
        Case("numpy.memmap, a view", in_file, 8 * LENGTH, "mapped"),
        Case("numpy.ndarray over SharedMemory", shared, mmap.PAGESIZE * 100, "shared"),
        Case("scipy.sparse.csr_array", sparse("csr"), (8 + 4) * LENGTH + 4 * (LENGTH + 1)),
        Case("scipy.sparse.csc_array", sparse("csc"), (8 + 4) * LENGTH + 4 * (LENGTH + 1)),
        Case("scipy.sparse.coo_array", sparse("coo"), (8 + 4 + 4) * LENGTH),
    ]


def _torch() -> list[Case]:
    import tensordict
    import torch

    def in_file() -> Any:
        folder = _files.enter_context(tempfile.TemporaryDirectory())
        return tensordict.TensorDict({"a": torch.zeros(LENGTH)}, [LENGTH]).memmap(folder)

    def history() -> Any:
        return torch.zeros(LENGTH, requires_grad=True).exp().exp()

    def entries() -> Any:
        return torch.sparse_coo_tensor(torch.arange(LENGTH)[None], torch.zeros(LENGTH), (LENGTH,))

    class Mine(torch.Tensor):
        pass

    def mine() -> Any:
        return torch.zeros(LENGTH).as_subclass(Mine)

    floats = 4 * LENGTH
    return [
        Case("torch.Tensor", lambda: torch.zeros(LENGTH), floats),
        Case("torch.Tensor, ten elements of it", lambda: torch.zeros(LENGTH)[:10], floats),
        Case(
            "torch.Tensor and the numpy array it was made of",
            lambda: (a := _array("float32"), torch.from_numpy(a)),
            floats,
        ),
        Case("torch.Tensor, sparse COO", entries, (4 + 8) * LENGTH),
        Case("torch.Tensor with its autograd graph", history, 3 * 4 * LENGTH),
        Case("torch.Tensor, subclass of the program's own", mine, floats),
        Case(
            "tensordict.TensorDict",
            lambda: tensordict.TensorDict({"a": torch.zeros(LENGTH)}, [LENGTH]),
            floats,
        ),
        Case("tensordict.TensorDict in a file", in_file, 4 * LENGTH, "mapped"),
    ]


def _jax() -> list[Case]:
    import jax
    import numpy as np

    def donated() -> Any:
        array = jax.numpy.zeros(LENGTH)
        array.delete()
        return array

    floats = 4 * LENGTH
    return [
        Case("jax.Array", lambda: jax.numpy.zeros(LENGTH), floats),
        Case(
            "jax.Array twice on the same device",
            lambda: (a := jax.numpy.zeros(LENGTH), jax.device_put(a)),
            floats,
        ),
        Case("jax.Array, its numpy view", lambda: np.asarray(jax.numpy.zeros(LENGTH)), floats),
        Case("jax.Array, donated", donated, 0),
        Case("jax.Array of random keys", lambda: jax.random.split(jax.random.key(0), 1000), 8 * 1000),
    ]


def _tables() -> list[Case]:
    import pandas

    texts = ["x" * 50] * LENGTH
    return [
        Case("pandas.DataFrame", lambda: pandas.DataFrame({"a": _array(), "b": _array()}), 16 * LENGTH),
        Case("pandas.Series, ten rows of it", lambda: pandas.Series(_array())[:10], 8 * LENGTH),
        Case("pandas.Series of text", lambda: pandas.Series(texts, dtype="string[pyarrow]"), 58 * LENGTH + 8),
        Case("pandas.Series of categories", lambda: pandas.Series(texts, dtype="category"), LENGTH),
    ]


def _arrow() -> list[Case]:
    import pyarrow

    def from_file() -> Any:
        path = Path(_files.enter_context(tempfile.TemporaryDirectory())) / "table.arrow"
        table = pyarrow.table({"a": _array()})
        with pyarrow.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
        with pyarrow.memory_map(str(path)) as file:
            return pyarrow.ipc.open_file(file).read_all()

    def in_file_bytes() -> int:
        with _files:
            buffer = from_file().column(0).chunk(0).buffers()[1]
            while buffer.parent is not None:
                buffer = buffer.parent
            return int(buffer.size)

    keys = ["a", "b"] * (LENGTH // 2)
    return [
        Case("pyarrow.Array", lambda: pyarrow.array(_array()), 8 * LENGTH),
        Case("pyarrow.Array, ten elements of it", lambda: pyarrow.array(_array())[:10], 8 * LENGTH),
        Case(
            "pyarrow.Array and the numpy array it was made of",
            lambda: (a := _array(), pyarrow.array(a)),
            8 * LENGTH,
        ),
        Case("pyarrow.Array of text", lambda: pyarrow.array(["x" * 50] * LENGTH), 54 * LENGTH + 4),
        Case("pyarrow.DictionaryArray", lambda: pyarrow.array(keys).dictionary_encode(), 4 * LENGTH),
        Case(
            "pyarrow.Table and a slice",
            lambda: (t := pyarrow.table({"a": _array()}), t.slice(5, 10)),
            8 * LENGTH,
        ),
        Case("pyarrow.Table over a mapped file", from_file, in_file_bytes(), "mapped"),
    ]


def _polars() -> list[Case]:
    import polars

    def frame() -> Any:
        return polars.DataFrame({"a": _array(), "b": _array("int64")})

    nulls = [1.0, None] * (LENGTH // 2)
    return [
        Case("polars.Series", lambda: polars.Series(_array()), 8 * LENGTH),
        Case("polars.Series, ten elements of it", lambda: polars.Series(_array())[:10], 8 * LENGTH),
        Case("polars.Series of text", lambda: polars.Series(["x" * 50] * LENGTH), 66 * LENGTH),
        Case("polars.Series with nulls", lambda: polars.Series(nulls), 8 * LENGTH + LENGTH // 8),
        Case("polars.DataFrame", lambda: frame(), 16 * LENGTH),
        Case("polars.DataFrame and a clone", lambda: (f := frame(), f.clone()), 16 * LENGTH),
        Case("polars.DataFrame, filtered", lambda: frame().filter(polars.col("b") == 0), 16 * LENGTH),
    ]


def _others() -> list[Case]:
    import ctypes

    import PIL.Image

    def anonymous() -> Any:
        return _files.enter_context(mmap.mmap(-1, 100 * mmap.PAGESIZE))

    return [
        Case("array.array", lambda: array("d", [0.0]) * LENGTH, 8 * LENGTH),
        Case("bytearray behind a memoryview", lambda: memoryview(bytearray(LENGTH))[5:], LENGTH),
        Case("ctypes array", lambda: (ctypes.c_double * LENGTH)(), 8 * LENGTH),
        Case("io.BytesIO", lambda: io.BytesIO(bytes(LENGTH)), LENGTH),
        Case("mmap.mmap, anonymous", anonymous, 100 * mmap.PAGESIZE, "shared"),
        Case("PIL.Image, a type without an entry", lambda: PIL.Image.new("RGB", (500, 500)), 4 * 500 * 500),
    ]


def _array(kind: str = "float64") -> Any:
    import numpy as np

    return np.zeros(LENGTH, dtype=kind)


def document(rows: list[Row]) -> str:
    table = Table("Arrays", "object | place | true bytes | ours | error we state | within")
    table.rows = [row.cells() for row in rows]
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    return f"""# How exact the sizes are

Written by `make exactness`, with {versions}.

Every object is made with a known content and measured by `heapwatch.measure.sizing.deep_size`. *Ours* also
counts the Python objects around the memory (names, wrappers: some hundred bytes). The error is `error_bytes`
of the size, exported as `trainer_object_size_error_bytes` and `trainer_buffer_error_bytes`. It is 0 if all
memory was measured, else a bound.

*All that is resident* means the resident memory of the whole process. Then the object holds memory that
cannot be measured, such as an autograd graph or an extension type that Heapwatch does not know. What such a
type exports by the buffer protocol or `__cuda_array_interface__` is counted.

A polars column does not show whether it is a slice of a longer one. The bound is the size of the adjacent
memory mappings. It is small in a small process.

{table.markdown()}
"""


def main() -> int:
    """Write the page; 1 when a row is outside its bound."""
    rows = [case.row() for case in cases()]
    DOCUMENT.write_text(document(rows))
    for row in rows:
        print("ok  " if row.holds else "FAIL", *row.cells(), sep="  ")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
