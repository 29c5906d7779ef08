"""Run the benchmarks and write what they found into docs/benchmarks.md.

`python -m benchmarks` runs all of them, each in a process of its own; `python -m benchmarks training` one,
and writes nothing. Exits with 1 when a claim does not hold.
"""

from __future__ import annotations

import sys
import time

import psutil

from benchmarks.measure import Report, machine, report_of
from benchmarks.running import ROOT, apart

BENCHMARKS = ("step_path", "training", "searching")
DOCUMENT = ROOT / "docs" / "benchmarks.md"


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(BENCHMARKS))
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    reports = [_run_apart(name) for name in names or BENCHMARKS]
    if not names:
        DOCUMENT.write_text(_document(reports))
    claims = [claim for report in reports for claim in report.claims]
    print("\n".join(claim.line() for claim in claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _run_apart(name: str) -> Report:
    print(f"{name} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    report = apart(report_of, name)
    for table in report.tables:
        print(table.markdown(), end="\n\n")
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return report


def _document(reports: list[Report]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`, which is `python -m benchmarks`.",
        f"Figures of one run on {machine()}, load average {psutil.getloadavg()[2]:.1f}.",
        "Use the ratios, not the times: what a table compares runs in one process. Where runs alternate, the",
        "least of several rounds counts. What the exporter's presence costs watched and unwatched blocks of",
        "one process alike is not seen.",
        "",
        "## Claims",
        "",
    ]
    lines += [f"- {claim.line()}" for report in reports for claim in report.claims]
    lines += ["", "## Tables", ""]
    lines += [f"{table.markdown()}\n" for report in reports for table in report.tables]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
