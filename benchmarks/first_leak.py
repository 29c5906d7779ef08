"""Measures the time from `pip install` to a named leak of a running process; writes it into docs/entering.md.

The process is the tutorial's, on an interpreter of its own without Heapwatch. The wheel is built from the
clone before the time begins; the two dependencies come from the package index.

python -m benchmarks.first_leak [--write]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Table, write_part
from benchmarks.running import ROOT

DOCUMENT = ROOT / "docs" / "entering.md"
PROGRAM = ROOT / "docs" / "tutorial" / "train.py"
MOST_SECONDS = 120.0
BEGIN, END = "<!-- written by `make bench-first-leak` -->", "<!-- end -->"


def main() -> int:
    """Returns 0 if the verdict is a leak with a path and a line within two minutes, else 1."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_leak", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {DOCUMENT.name}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)],
            check=True,
        )
        (wheel,) = Path(folder).glob("*.whl")
        bare = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        with subprocess.Popen([sys.executable, "-I", str(PROGRAM)], env=bare) as trainer:
            try:
                times, last = measured(Path(folder) / "new", wheel, trainer.pid, bare)
            finally:
                trainer.kill()
    text = Table("", "reached | after", [[what, f"{spent:.0f} s"] for what, spent in times.items()]).body()
    print(text, last, sep="\n\n")
    if "leak: " not in last or "train.py:16" not in last:
        return 1
    if options.write:
        write_part(DOCUMENT, BEGIN, END, text)
    return 0 if times["the verdict is `leak`"] < MOST_SECONDS else 1


def measured(new: Path, wheel: Path, pid: int, environment: dict[str, str]) -> tuple[dict[str, float], str]:
    """Seconds since the begin by what was reached, and what `heapwatch explain` said in the end."""
    began = time.monotonic()
    times: dict[str, float] = {}

    def note(what: str) -> None:
        times.setdefault(what, time.monotonic() - began)

    subprocess.run([sys.executable, "-m", "venv", str(new)], check=True, env=environment)
    note("an empty environment is made")
    install = [str(new / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(install, check=True, env=environment)
    note("`pip install heapwatch` is done")
    command = [str(new / "bin" / "heapwatch"), "explain", str(pid)]
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as explain:
        for line in explain.stdout or ():
            lines.append(line.rstrip())
            if "is entered" in line:
                note("`heapwatch explain PID` has entered the process")
            if "train.py:16" in line:
                note("it names the path and the line")
            if line.startswith("leak: "):
                note("the verdict is `leak`")
    return times, " ".join(lines[-2:])


if __name__ == "__main__":
    sys.exit(main())
