"""The C library writes the exit status when Python's own code has ended."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import atexit, os, sys
from pathlib import Path
from heapwatch.runtime.exit_status import append_exit_status, uncaught
atexit.register(lambda: print(append_exit_status(Path(sys.argv[1])), uncaught()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of glibc")
@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("", b"\0", ""),
        ("sys.exit(7)", b"\x07", ""),
        ("raise SystemExit(300)", b"\x2c", ""),
        ("1 / 0", b"\1", "exit status 1"),
        ("os.fork() or os._exit(3)", b"\0", ""),
    ],
)
def test_it_is_appended_to_the_file(tmp_path: Path, end: str, status: bytes, said: str) -> None:
    file = tmp_path / "status"
    file.write_bytes(b"before")
    command = [sys.executable, "-c", PROGRAM + end, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status[0]
    assert done.stdout.strip() == f"True {said}".strip()
    assert file.read_bytes() == b"before" + status
