"""What is read of objects that are not pure Python, in which thread, and why that is safe.

`docs/reads.md` is made from this table. A test compares it with the code: it finds an attribute of numpy,
torch, pandas, Arrow, polars or JAX that is read without a row here.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# `any`: every thread that holds the interpreter's lock. `alone`: only while all others wait, see `alone.py`.
# `safe point`: the thread that calls `watch.step()`, between two steps.
Thread = Literal["any", "alone", "safe point"]


class Read(NamedTuple):
    """One row.

    Attributes:
        of: whose objects.
        names: the attributes and functions, as the code has them.
        modules: the modules of this package that read them.
        thread: which thread may.
        why: the reason.

    """

    of: str
    names: tuple[str, ...]
    modules: tuple[str, ...]
    thread: Thread
    why: str


READS = (
    Read(
        "torch.Tensor",
        ("is_leaf", "requires_grad"),
        ("measure.sizing.tensor_storage", "measure.sizing.replay_buffers", "measure.sizing.graph"),
        "any",
        "A flag, and a pointer that is compared with null and not followed. They lie in a part of the "
        "tensor that lives as long as the tensor.",
    ),
    Read(
        "torch.Tensor",
        ("numel", "element_size", "nbytes", "storage_offset", "is_contiguous", "dim", "layout", "device",
         "type"),
        ("measure.sizing.tensor_storage", "measure.introspection.reading",
         "measure.objects.large", "measure.sizing.replay_buffers", "measure.sizing.rings"),
        "any",
        "Numbers and flags inside the tensor. While `resize_` runs they may be old or new.",
    ),
    Read(
        "torch.Tensor",
        ("shape",),
        ("measure.introspection.reading", "measure.sizing.replay_buffers"),
        "any",
        "Up to five sizes lie inside the tensor; the sizes of a tensor with more dimensions are not "
        "read. Of a declared buffer the shape is read at a safe point.",
    ),
    Read(
        "torch.Tensor",
        ("_storage_address",),
        ("measure.sizing.tensor_storage", "measure.objects.large"),
        "any",
        "The address itself, which is not followed: it tells which tensors share their memory.",
    ),
    Read(
        "torch.Tensor",
        ("grad", "_indices", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices",
         "values"),
        ("measure.sizing.tensor_storage",),
        "alone",
        "`backward` and in-place operations replace these objects without the lock. A gradient that "
        "cannot be read counts as an uncertainty as large as its parameter.",
    ),
    Read(
        "torch.Tensor",
        ("grad_fn",),
        ("measure.sizing.graph",),
        "alone",
        "In-place operations replace it without the lock.",
    ),
    Read(
        "torch.Tensor",
        ("untyped_storage", "data_ptr", "_storage_Use_Count", "_get_filename"),
        ("measure.sizing.tensor_storage",),
        "alone",
        "`set_`, `resize_` and `share_memory_` replace the storage, or its memory, without the lock. "
        "Without it the part of the storage counts that the tensor uses.",
    ),
    Read(
        "torch.UntypedStorage",
        ("_cdata", "nbytes", "data_ptr", "is_shared", "device", "type"),
        ("measure.sizing.tensor_storage",),
        "any",
        "Numbers inside the storage, which lives as long as the reader refers to it.",
    ),
    Read(
        "autograd operations",
        ("next_functions", "_sequence_nr"),
        ("measure.sizing.graph",),
        "any",
        "Both stay as they were made. The reader refers to the newest operation, so all others that it "
        "leads to live. `backward` frees what operations saved, which is not read.",
    ),
    Read(
        "torch subclasses that wrap tensors",
        ("__tensor_flatten__",),
        ("measure.sizing.tensor_storage",),
        "any",
        "Only the presence of the method is looked at. The tensors inside are attributes.",
    ),
    Read(
        "torch.cuda",
        ("cuda", "memory_stats"),
        ("measure.gpu.device_pools", "runtime.release"),
        "any",
        "The allocator has a lock of its own.",
    ),
    Read(
        "numpy.ndarray",
        ("base", "dtype", "nbytes", "flags", "shape", "size", "type", "ndim"),
        ("measure.sizing.tensor_storage", "measure.introspection.reading",
         "measure.introspection.object_arrays", "measure.sizing.replay_buffers",
         "measure.objects.untracked", "explain.weigh"),
        "any",
        "Changed only with the lock held. `ndarray.resize` refuses while anybody else refers to the "
        "array, so arrays are not remembered from one reading to the next.",
    ),
    Read(
        "numpy arrays of objects",
        ("item", "ravel", "tolist", "size", "dtype"),
        ("measure.introspection.object_arrays", "measure.sizing.tensor_storage"),
        "any",
        "Items are changed only with the lock held. A resized array moves: one call into C reads them all.",
    ),
    Read(
        "numpy arrays of StringDType",
        ("tolist", "ravel"),
        ("measure.sizing.tensor_storage",),
        "alone",
        "Their memory has a lock of its own; a thread that waits for it with the interpreter's lock in "
        "its hand could wait for ever.",
    ),
    Read(
        "pandas index engines",
        ("sizeof",),
        ("measure.sizing.foreign",),
        "any",
        "Numbers inside the hash table. Frames are read as the Python objects and arrays that they "
        "consist of.",
    ),
    Read(
        "Arrow buffers, arrays and tables",
        ("buffers", "parent", "is_cpu", "is_mutable", "address", "size", "chunks", "itercolumns", "type",
         "dictionary", "as_buffer"),
        ("measure.sizing.foreign",),
        "any",
        "Immutable.",
    ),
    Read(
        "polars series and frames",
        ("get_columns", "n_chunks", "get_chunks", "estimated_size", "to_numpy_view", "__array_interface__"),
        ("measure.sizing.foreign",),
        "any",
        "Each object has a lock of its own in Rust, which is held only while the interpreter's lock is "
        "free.",
    ),
    Read(
        "jax.Array",
        ("is_deleted", "_npy_value", "platform", "sharding", "memory_kind", "_arrays",
         "on_device_size_in_bytes"),
        ("measure.sizing.foreign", "measure.gpu.device_pools"),
        "any",
        "Arrays are immutable. Deletion and donation take the lock, and an array that is gone raises an "
        "error.",
    ),
    Read(
        "jax.Array",
        ("unsafe_buffer_pointer",),
        ("measure.sizing.foreign",),
        "alone",
        "An array cannot be donated to a computation while its address is read.",
    ),
    Read(
        "JAX and CuPy pools",
        ("platform", "memory_stats", "live_executables", "used_bytes", "total_bytes"),
        ("measure.gpu.device_pools",),
        "any",
        "The allocators have locks of their own.",
    ),
    Read(
        "CuPy arrays",
        ("data", "mem", "ptr", "size"),
        ("measure.sizing.foreign",),
        "any",
        "Changed only with the lock held.",
    ),
    Read(
        "objects of unknown C code",
        ("PyObject_GetBuffer", "__cuda_array_interface__"),
        ("measure.sizing.memory", "measure.sizing.foreign"),
        "alone",
        "Their buffer is asked for and given back in one call into C, as nothing is known of their "
        "locks. For mapped memory and ctypes, which are changed with the lock held, that may be done at "
        "any time.",
    ),
    Read(
        "objects of unknown C code",
        ("gc.get_referents", "sys.getrefcount"),
        ("measure.sizing.traversal", "measure.introspection.reading", "measure.objects.untracked"),
        "any",
        "The garbage collector asks for the same, in whichever thread it starts. `__sizeof__` of a "
        "library is not called.",
    ),
    Read(
        "SWIG objects, such as Box2D bodies",
        ("bodies", "bodyCount"),
        ("collectors.bodies",),
        "safe point",
        "A world may be inside its step in any other thread, and a destroyed body is freed memory.",
    ),
    Read(
        "Box2D worlds that nobody declared",
        ("bodyCount", "locked"),
        ("explain.places",),
        "safe point",
        "Without `watch.step()` it is the main thread. If another thread steps the world, it holds the "
        "interpreter's lock meanwhile, except in a callback of the program, where `locked` is set and "
        "nothing is read.",
    ),
    Read(
        "frames and generators of running threads",
        ("f_locals", "f_back", "f_code", "f_lineno", "gi_frame"),
        ("measure.introspection.roots", "measure.introspection.frames", "explain.census"),
        "any",
        "Changed only with the lock held. Under a debugger the local variables are not read: until "
        "Python 3.12 it shares one snapshot of them with every reader.",
    ),
    Read(
        "functools caches",
        ("cache_info",),
        ("measure.introspection.reading",),
        "any",
        "Changed only with the lock held.",
    ),
    Read(
        "sqlite3, tensordict and other objects",
        (),
        (),
        "any",
        "Nothing is read but their Python attributes and what the collector sees of them.",
    ),
)  # fmt: skip
