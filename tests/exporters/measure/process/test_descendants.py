from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from heapwatch.measure.process.descendants import descendants, private_bytes


def test_children_are_found_and_weighed() -> None:
    program = "import sys; held = bytearray(b'x' * 30_000_000); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert child.pid in descendants(os.getpid())
        assert (private_bytes(child.pid) or 0) > 30_000_000
        child.communicate()
    assert child.pid not in descendants(os.getpid())
    assert private_bytes(child.pid) is None


def test_the_kernels_lists_are_followed(tmp_path: Path) -> None:
    for pid, children in ((1, "2 3"), (2, "4"), (3, ""), (4, "")):
        task = tmp_path / str(pid) / "task" / str(pid)
        task.mkdir(parents=True)
        (task / "children").write_text(children)
    assert sorted(descendants(1, proc=str(tmp_path))) == [2, 3, 4]
    (tmp_path / "1" / "task" / "5").mkdir()  # a thread that ended after its folder was listed
    assert sorted(descendants(1, proc=str(tmp_path))) == [2, 3, 4]
    assert len(descendants(1, 2, proc=str(tmp_path))) == 2


def test_without_the_kernels_lists_psutil_is_asked(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert child.pid in descendants(os.getpid(), proc=str(tmp_path))
        child.communicate(b"\n")
