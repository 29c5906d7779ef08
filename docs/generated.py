"""Files of the docs that a program writes, or compares with `--check`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path


def write_or_check(module: str, files: Mapping[Path, str]) -> int:
    """Write the files, or compare them; returns the exit code, 1 where `--check` finds a difference."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    if not parser.parse_args().check:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [
        path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    for path in stale:
        print(f"{path} is not what would be written: run python -m {module}", file=sys.stderr)
    return bool(stale)
