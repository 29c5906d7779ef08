"""The machine code that a visit leaves in a process, and the frame that a call needs (x86-64).

The code is that of machine_code.s. It lies behind the last function of a library, in bytes of its last page
that nothing uses, and stays there: the interpreter may still have to call it when the visit is over. It does
nothing unless a request is waiting for it.

A call needs no tracer to end well: with what `frame` has put on the stack, `call_function` restores all
registers, also the vector registers, and goes on where the thread was.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# What the code calls, in the order of its table.
FUNCTIONS = (
    "Py_IsInitialized",
    "PyGILState_Ensure",
    "PyRun_SimpleString",
    "PyGILState_Release",
    "PyThread_start_new_thread",
)
CODE = bytes.fromhex(
    "b8e700000031d2480faea380000000488b7b08488b7310488b5318488b4b204c8b43284c8b4b3031c0ff1348894338b82700"
    "00000f05b8e700000031d2480faeab80000000488b6340415f415e415d415c415b415a415941585d5f5e5a595b589dc28000"
    "b8090000004989ca0f05c348c7470800000000534889fbb8270000000f05483b4318753031c04887034885c0742648c74310"
    "01000000488d3d1b0000004889deff154effffff4883f8ff750848c743100000000031c05bc3534154504889fbff150fffff"
    "ff85c0741cff150dffffff4189c4488d7b40ff1508ffffff4489e7ff1507ffffff48c743100000000058415c5bc3"
)
_TABLE = struct.Struct("<8s6Q")
SIZE = _TABLE.size + len(CODE)
# With a hash of the code: that of another version is left alone.
_ANY_MARK = b"HEAPW"
MARK = _ANY_MARK + hashlib.sha256(CODE).digest()[:3]
_PLACE_BYTES = 512  # for one version
_ALIGNMENT = 16

RED_ZONE = 128  # below the stack pointer, where a function may keep values (System V ABI for AMD64, 3.2.2)
_HEADER = struct.Struct("<9Q")  # a function, six arguments, its result, and where the registers are
_RESULT = 56
_VECTORS = 128
# What XSAVE writes up to the upper registers of AVX-512 (Intel SDM, volume 1, 13.4), at a multiple of 64.
_VECTORS_BYTES, _VECTORS_ALIGNMENT = 2688, 64
_POPPED = (
    *("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8", "rbp", "rdi", "rsi", "rdx", "rcx", "rbx", "rax"),
    *("eflags", "rip"),
)
_REGISTERS = struct.Struct(f"<{len(_POPPED)}Q")


class Code:
    """Addresses in a process that has the code; see machine_code.s."""

    def __init__(self, table: int) -> None:
        self.requests = table + len(MARK)
        self.call_function, self.call_again = table + 0x38, table + 0x47
        self.gate = table + 0x6C
        self.map_memory, self.queued, self.begin = table + 0x9C, table + 0xA7, table + 0xAF


class Frame(NamedTuple):
    """What `call_function` finds on the stack.

    Attributes:
        address: of its first byte, which is the stack pointer of the called function.
        registers: address of those that it restores.
        content: its bytes, up to the red zone of the interrupted function.

    """

    address: int
    registers: int
    content: bytes

    @property
    def result(self) -> int:
        """The address of the result of the called function."""
        return self.address + _RESULT


def code_with(functions: Mapping[str, int]) -> bytes:
    """The table, with these addresses of FUNCTIONS, and the code."""
    return _TABLE.pack(MARK, 0, *(functions[name] for name in FUNCTIONS)) + CODE


def place_in(unused: bytes, address: int) -> tuple[int, bool] | None:
    """Where the code is in unused bytes, or has room, and whether it is there; None without room."""
    for at in range(-address % _ALIGNMENT, len(unused) - SIZE + 1, _PLACE_BYTES):
        found = unused[at : at + len(MARK)]
        if found == MARK or not found.startswith(_ANY_MARK):
            return address + at, found == MARK
    return None


def frame(registers: Mapping[str, int]) -> Frame:
    """The frame for a thread that is to go on with these registers."""
    restored = registers["rsp"] - RED_ZONE - _REGISTERS.size
    address = (restored - _VECTORS - _VECTORS_BYTES) & -_VECTORS_ALIGNMENT
    empty = bytes(restored - address)
    return Frame(address, restored, empty + _REGISTERS.pack(*(registers[name] for name in _POPPED)))


def header(function: int, arguments: Sequence[int], registers: int) -> bytes:
    """The first bytes of a frame: what is to be called.

    Args:
        function: its address.
        arguments: up to six.
        registers: where those are that are restored afterwards.

    """
    return _HEADER.pack(function, *arguments, *[0] * (6 - len(arguments)), 0, registers)
