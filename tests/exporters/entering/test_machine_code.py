"""The code that a visit leaves in a process is what its source says, and finds its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from heapwatch.entering import machine_code
from heapwatch.entering.machine_code import CODE, FUNCTIONS, MARK, SIZE, Code, code_with, frame, place_in

SOURCE = Path(machine_code.__file__).with_suffix(".s")
WITH_FUNCTIONS = code_with(dict.fromkeys(FUNCTIONS, 1))
REGISTERS = {
    **{name: number for number, name in enumerate(("r15", "r14", "r13", "r12", "r11", "r10", "r9", "r8"))},
    **dict.fromkeys(("rbp", "rdi", "rsi", "rdx", "rcx", "rbx", "rax", "eflags"), 100),
    "rip": 0x1234,
}


@pytest.mark.skipif(shutil.which("as") is None, reason="there is no assembler: install binutils")
def test_the_code_is_that_of_its_source(tmp_path: Path) -> None:
    made, symbols = tmp_path / "code.o", {}
    subprocess.run(["as", SOURCE, "-o", made], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", made, tmp_path / "code.bin"], check=True)
    content = (tmp_path / "code.bin").read_bytes()
    assert content[-len(CODE) :] == CODE
    assert len(content) == SIZE
    listed = subprocess.run(["nm", made], check=True, capture_output=True, text=True).stdout
    for line in listed.splitlines():
        value, _, name = line.split()
        symbols[name] = int(value, 16)
    code = Code(0)
    for name in ("call_function", "call_again", "gate", "map_memory", "queued", "begin"):
        assert getattr(code, name) == symbols[name], name


def test_the_code_is_put_behind_that_of_another_version_and_found_again() -> None:
    unused = bytearray(3 * 512)
    assert place_in(bytes(unused), 0x1000) == (0x1000, False)
    unused[: len(MARK)] = b"HEAPWxyz"
    assert place_in(bytes(unused), 0x1000) == (0x1200, False)
    unused[512 : 512 + SIZE] = WITH_FUNCTIONS
    assert place_in(bytes(unused), 0x1000) == (0x1200, True)


@pytest.mark.parametrize("start", range(0x1000, 0x1010))
def test_it_lies_at_a_multiple_of_sixteen_or_nowhere(start: int) -> None:
    place = place_in(bytes(SIZE + 15), start)
    assert place is not None
    assert place[0] % 16 == 0
    assert place[0] + SIZE <= start + SIZE + 15
    assert place_in(bytes(SIZE - 1), start) is None


@pytest.mark.parametrize("stack_pointer", range(0x7FFF_0000_0000, 0x7FFF_0000_0040))
def test_a_frame_ends_below_the_red_zone_and_is_aligned(stack_pointer: int) -> None:
    made = frame({**REGISTERS, "rsp": stack_pointer})
    assert made.address % 64 == 0
    assert made.address + len(made.content) == stack_pointer - 128
    # `ret 128` takes the last word, and leaves the stack pointer where it was.
    assert int.from_bytes(made.content[-8:], "little") == REGISTERS["rip"]
    # The vector registers lie between what is called and the registers.
    assert made.registers - made.address >= 128 + 2688
