"""What is reached in processes that run: entered ones, workers, C code, large heaps; writes docs/reach.md."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

from benchmarks.measure import Claim, Table, write_part
from benchmarks.reach import entered, machine, watched
from benchmarks.running import ROOT, allow_interrupts

DOCUMENT = ROOT / "docs" / "reach.md"
PARTS: dict[str, Callable[[float], tuple[list[Table], list[Claim]]]] = {
    "entered": entered.table,
    "workers": lambda _: watched.workers(),
    "native": lambda _: watched.native(),
    "heaps": lambda _: watched.heaps(),
    "machine": lambda _: machine.machine(),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="these parts")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of rounds into each busy program (%(default)g)"
    )
    parser.add_argument("--write", action="store_true", help="write docs/reach.md")
    arguments = parser.parse_args()
    allow_interrupts()
    holds = True
    for part in arguments.only:
        tables, claims = PARTS[part](arguments.seconds)
        holds = holds and all(claim.holds for claim in claims)
        print(*(claim.line() for claim in claims), sep="\n", flush=True)
        if arguments.write:
            lines = "\n".join(f"- {claim.line()}" for claim in claims)
            text = "\n\n".join([*(table.markdown() for table in tables), lines])
            begin, end = f"<!-- {part}: written by `make bench-reach` -->", f"<!-- end of {part} -->"
            write_part(DOCUMENT, begin, end, text)
    return 0 if holds else 1


if __name__ == "__main__":
    os.environ.pop("HEAPWATCH_STATE", None)  # it joins no stack
    sys.exit(main())
