"""Run the benchmarks and write what they found into docs/benchmarks.md.

`python -m benchmarks` runs all of them, each in a process of its own; `python -m benchmarks census` one, and
writes nothing. Exits with 1 when a claim does not hold.
"""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
import time
from dataclasses import asdict

import psutil

from benchmarks.measure import Claim, Report, Table
from benchmarks.running import ROOT

BENCHMARKS = ("step_path", "deep_size", "census", "scrape", "training", "processes", "inventory")
DOCUMENT = ROOT / "docs" / "benchmarks.md"


def main(names: list[str]) -> int:
    unknown = sorted(set(names) - set(BENCHMARKS) - {"--json"})
    if unknown:
        sys.exit(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if "--json" in names:
        json.dump(asdict(importlib.import_module(f"benchmarks.cost.{names[1]}").run()), sys.stdout)
        return 0
    reports = [_run_apart(name) for name in names or BENCHMARKS]
    if not names:
        DOCUMENT.write_text(_document(reports))
    claims = [claim for report in reports for claim in report.claims]
    print("\n".join(claim.line() for claim in claims))
    return 0 if all(claim.holds for claim in claims) else 1


def _run_apart(name: str) -> Report:
    print(f"{name} ...", file=sys.stderr, flush=True)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--json", name], stdout=subprocess.PIPE, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    report = Report(
        [Table(**table) for table in found["tables"]],
        [Claim(**claim) for claim in found["claims"]],
        found["missing"],
    )
    for table in report.tables:
        print(table.markdown(), end="\n\n")
    for missing in report.missing:
        print(f"not compared: {missing}")
    print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return report


def _document(reports: list[Report]) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`, which is `python -m benchmarks` with the extra `bench` installed.",
        f"Figures of one run on {_machine()}.",
        "Use the ratios, not the times: what a table compares runs in one process. Where runs alternate, the",
        "least of several rounds counts.",
        "",
        "## Claims",
        "",
    ]
    lines += [f"- {claim.line()}" for report in reports for claim in report.claims]
    lines += ["", "## Tables", ""]
    lines += [f"{table.markdown()}\n" for report in reports for table in report.tables]
    missing = sorted({name for report in reports for name in report.missing})
    if missing:
        lines += ["Not compared, because not installed: " + ", ".join(missing) + ".", ""]
    return "\n".join(lines)


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    system = f"CPython {platform.python_version()}, {platform.system()} {platform.machine()}"
    load = f"load average {psutil.getloadavg()[2]:.1f}"
    return f"{psutil.cpu_count()} shared cores ({load}), {memory:.0f} GiB of memory, {system}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
