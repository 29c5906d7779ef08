"""What is reached in processes that run: entered ones, workers, C code, large heaps; writes docs/reach.md."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Claim, Table
from benchmarks.reach import entered, heaps, native, workers

DOCUMENT = Path(__file__).parents[2] / "docs" / "reach.md"
PARTS: dict[str, Callable[[float], tuple[list[Table], list[Claim]]]] = {
    "entered": entered.table,
    "workers": lambda _: workers.table(),
    "native": lambda _: native.table(),
    "heaps": lambda _: heaps.table(),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of rounds into each busy program (%(default)g)"
    )
    parser.add_argument("--write", action="store_true", help="write docs/reach.md")
    arguments = parser.parse_args()
    holds = True
    for part in arguments.only:
        tables, claims = PARTS[part](arguments.seconds)
        holds = holds and all(claim.holds for claim in claims)
        print(*(claim.line() for claim in claims), sep="\n", flush=True)
        if arguments.write:
            _write(part, tables, claims)
    return 0 if holds else 1


def _write(part: str, tables: list[Table], claims: list[Claim]) -> None:
    begin, end = f"<!-- {part}: written by `make bench-reach` -->\n", f"<!-- end of {part} -->"
    lines = "\n".join(f"- {claim.line()}" for claim in claims)
    text = "\n\n".join([*(table.markdown() for table in tables), lines])
    document = DOCUMENT.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    written, found = pattern.subn(lambda _: f"{begin}\n{text}\n\n{end}", document)
    if not found:
        raise SystemExit(f"{DOCUMENT} has no place for the part {part!r}")
    DOCUMENT.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    os.environ.pop("HEAPWATCH_STATE", None)  # it joins no stack
    sys.exit(main())
