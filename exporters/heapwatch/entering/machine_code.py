"""The machine code that a visit writes into a process, and the stack frame of a call (x86-64).

The source is machine_code.s. It is written into unused bytes of the last code page of a library, and stays
there: the interpreter may call it after the visit. It does nothing unless a request waits.

A call ends well without the tracer: `call_function` restores all registers from the frame, including the
vector registers, and continues where the thread was interrupted.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# The functions that the code calls, in the order of its table.
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
# Includes a hash of the code, so the code of another version is not replaced.
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
    """The stack frame that `call_function` uses.

    Attributes:
        address: of its first byte, which is the stack pointer of the called function.
        registers: address of the registers that it restores.
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
    """Return the table with these addresses of FUNCTIONS, followed by the code."""
    return _TABLE.pack(MARK, 0, *(functions[name] for name in FUNCTIONS)) + CODE


def place_in(unused: bytes, address: int) -> tuple[int, bool] | None:
    """Return an address for the code in unused bytes, and whether the code is there already; None if full."""
    for offset in range(-address % _ALIGNMENT, len(unused) - SIZE + 1, _PLACE_BYTES):
        mark = unused[offset : offset + len(MARK)]
        if mark == MARK or not mark.startswith(_ANY_MARK):
            return address + offset, mark == MARK
    return None


def frame(registers: Mapping[str, int]) -> Frame:
    """Return the frame for a thread that continues with these registers after the call."""
    restored = registers["rsp"] - RED_ZONE - _REGISTERS.size
    address = (restored - _VECTORS - _VECTORS_BYTES) & -_VECTORS_ALIGNMENT
    padding = bytes(restored - address)
    return Frame(address, restored, padding + _REGISTERS.pack(*(registers[name] for name in _POPPED)))


def header(function: int, arguments: Sequence[int], registers: int) -> bytes:
    """Return the first bytes of a frame, which describe the call.

    Args:
        function: the address of the function.
        arguments: up to six.
        registers: the address of the registers to restore afterwards.

    """
    return _HEADER.pack(function, *arguments, *[0] * (6 - len(arguments)), 0, registers)
