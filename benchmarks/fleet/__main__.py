"""Measure the real stack under 1, 10, 100 and 1000 simulated trainers; writes docs/fleet.md.

Prometheus scrapes each every 15 s with the rules that the package ships; a leak in one trainer goes the whole
way to its cleanup. Measured are Prometheus's own account of scrapes, rules and series, the memory of its
process, and the time of the Fleet page's queries.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psutil
from prometheus_client.parser import text_string_to_metric_families

from benchmarks.measure import Claim, Table
from benchmarks.running import ROOT
from heapwatch.text.numbers import duration, size
from heapwatch_stack.supervision import Supervisor
from tests.dashboards import asking
from tests.dashboards.documents import Target, targets
from tests.support.running_stack import Stack

DOCUMENT = ROOT / "docs" / "fleet.md"
SIZES = (1, 10, 100, 1000)
SCRAPE_SECONDS = 15
PATIENCE = 600


@dataclass(frozen=True)
class Measured:
    """A fleet of trainers at work, of which one leaks in the end; durations in seconds, memory in bytes.

    Attributes:
        scraped: share of the scrapes of the last minutes that were answered in time.
        rules: the time of one evaluation of all groups, on the average of four minutes.
        interval: between two evaluations.
        series: in Prometheus's head.
        samples: appended a second.
        memory: resident, of Prometheus.
        cores: its CPU seconds a second, which other load on the machine does not change much.
        page: the slowest query of the Fleet page.
        cleaned_after: from the start of the leak to the cleanup; None where it did not come.
        others: cleanups of trainers that do not leak.

    """

    trainers: int
    scraped: float
    rules: float
    interval: float
    series: float
    samples: float
    memory: float
    cores: float
    page: float
    cleaned_after: float | None = None
    others: int = 0

    @property
    def cleaned(self) -> str:
        """When the leak was cleaned up, in words."""
        return "never" if self.cleaned_after is None else duration(self.cleaned_after)


@contextmanager
def fleet(count: int, targets: Path) -> Iterator[list[int]]:
    """Ports of so many simulated trainers, announced in `targets`."""
    command = [sys.executable, "-m", "benchmarks.fleet.trainers", str(count), str(targets / "fleet.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.stdin.close()


def measure(count: int, minutes: float) -> Measured:
    """Run the stack with so many trainers for some minutes, then make one of them leak."""
    with tempfile.TemporaryDirectory() as name:
        stack = Stack(Path(name), HEAPWATCH_CHECKOUT="", HEAPWATCH_STATE=f"{name}/state")
        stack.settings.targets.mkdir(parents=True)
        try:
            up = stack.run("up")
            if up.returncode:
                raise SystemExit(up.stderr)
            with fleet(count, stack.settings.targets) as ports:
                time.sleep(60 * minutes)
                quiet = observe(stack, count)
                cleaned_after, others = leak(ports)
                return replace(quiet, cleaned_after=cleaned_after, others=others)
        finally:
            stack.run("down")


def observe(stack: Stack, count: int) -> Measured:
    """What Prometheus says of itself, and what its process and the page's queries take."""
    url = stack.settings.url("prometheus")
    text = httpx.get(f"{url}/metrics", timeout=30, trust_env=False).text
    own = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    interval = min(s.value for s in own if s.name == "prometheus_rule_group_interval_seconds")
    series = next(s.value for s in own if s.name == "prometheus_tsdb_head_series")
    rules = interval * _query(url, "sum(rate(prometheus_rule_group_duration_seconds_sum[4m]))")
    scraped = _query(url, 'sum(sum_over_time(up{job="trainer"}[2m]))')
    wanted = count * 120 / SCRAPE_SECONDS
    samples = _query(url, "sum(rate(prometheus_tsdb_head_samples_appended_total[2m]))")
    cores = _query(url, 'sum(rate(process_cpu_seconds_total{service="prometheus"}[2m]))')
    pid = Supervisor(stack.settings).processes()["prometheus"]["pid"]
    supervised = psutil.Process(pid)
    family = [supervised, *supervised.children(recursive=True)]
    memory = max((one.memory_info().rss for one in family if "prometheus" in one.name()), default=0)
    share = min(1.0, scraped / wanted)
    return Measured(count, share, rules, interval, series, samples, memory, cores, _page(url))


def leak(ports: list[int]) -> tuple[float | None, int]:
    """Seconds until the first trainer, which is made to leak, is cleaned up, and cleanups of the others."""
    began = time.monotonic()
    _ask(ports[0], "/leak")
    while not int(_ask(ports[0], "/cleanups")):
        if time.monotonic() - began > PATIENCE:
            return None, sum(int(_ask(port, "/cleanups")) for port in ports[1:])
        time.sleep(1)
    return time.monotonic() - began, sum(int(_ask(port, "/cleanups")) for port in ports[1:])


def _page(url: str) -> float:
    """Seconds of the slowest query of the Fleet page, over the last hour; of three times the middle."""

    def seconds(target: Target) -> float:
        began = time.monotonic()
        asking.run(url, target, hours=1)
        return time.monotonic() - began

    page = [target for target in targets() if target.dashboard == "heapwatch-fleet"]
    return max(statistics.median(seconds(target) for _ in range(3)) for target in page)


def _ask(port: int, path: str) -> str:
    return httpx.get(f"http://127.0.0.1:{port}{path}", timeout=30, trust_env=False).text


def _query(url: str, expression: str) -> float:
    answer = httpx.get(f"{url}/api/v1/query", params={"query": expression}, timeout=60, trust_env=False)
    if not (found := answer.json()["data"]["result"]):
        raise SystemExit(f"Prometheus has no value of {expression}: --minutes was too short, or it failed")
    return float(found[0]["value"][1])


def claims(found: list[Measured]) -> list[Claim]:
    """What must hold at the largest fleet."""
    last = found[-1]
    return [
        Claim(f"{last.trainers} trainers: scrapes in time", f"{last.scraped:.2%}", last.scraped >= 0.999),
        Claim(
            f"{last.trainers} trainers: rules within half their interval",
            f"{last.rules:.2f} of {last.interval:.0f} s",
            last.rules < last.interval / 2,
        ),
        Claim(
            "rules below 1 ms for a trainer and evaluation",
            f"{last.rules / last.trainers * 1e3:.2f} ms",
            last.rules < 1e-3 * last.trainers,
        ),
        Claim(
            "Prometheus with its rules: at most a tenth of a core for 1000 trainers",
            f"{last.cores:.3f} cores for {last.trainers}",
            last.cores <= max(0.1, 1e-4 * last.trainers),
        ),
        Claim("no query of the Fleet page over a second", f"{last.page:.2f} s", last.page <= 1),
        Claim(
            "the leak of one trainer is cleaned up, the others are left alone",
            f"{', '.join(one.cleaned for one in found)}; {sum(one.others for one in found)} others",
            all(m.cleaned_after is not None for m in found) and not any(m.others for m in found),
        ),
    ]


def table(found: list[Measured]) -> Table:
    header = (
        "trainers | scrapes in time | one evaluation of all rules | a trainer | series"
        " | samples a second | Prometheus's memory | its CPU | slowest query of the Fleet page"
        " | from leak to cleanup"
    )
    rows = [
        [
            f"{one.trainers:,}",
            f"{one.scraped:.1%}",
            f"{one.rules:.2f} s",
            f"{one.rules / one.trainers * 1e3:.2f} ms",
            f"{one.series:,.0f}",
            f"{one.samples:,.0f}",
            size(one.memory),
            f"{one.cores:.3f} cores",
            f"{one.page:.2f} s",
            one.cleaned,
        ]
        for one in found
    ]
    return Table("The stack under many trainers", header, rows)


def main() -> int:
    """Run; 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fleet", description=__doc__)
    parser.add_argument("--trainers", type=int, nargs="+", default=SIZES, metavar="N")
    parser.add_argument(
        "--minutes", type=float, default=8, help="of each fleet before the leak (%(default)s)"
    )
    parser.add_argument("--write", action="store_true", help="into docs/fleet.md")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that no stack stays behind
    found, loads = [], [os.getloadavg()[0]]
    for count in arguments.trainers:
        found.append(measure(count, arguments.minutes))
        loads.append(os.getloadavg()[0])
        print(found[-1], flush=True)
    outcome = claims(found)
    text = table(found).markdown() + "\n\n" + "\n".join(f"- {claim.line()}" for claim in outcome)
    print(text)
    if arguments.write:
        about = (
            f"{platform.machine()}, {os.cpu_count()} cores, {time.strftime('%Y-%m-%d')},"
            f" {arguments.minutes:g} minutes of each fleet before the leak. Load of the machine before the"
            f" first fleet and after each: {', '.join(f'{load:.1f}' for load in loads)}."
        )
        head, _, _ = DOCUMENT.read_text(encoding="utf-8").partition("<!-- measured -->\n")
        DOCUMENT.write_text(f"{head}<!-- measured -->\n\n{about}\n\n{text}\n", encoding="utf-8")
    return 0 if all(claim.holds for claim in outcome) else 1


if __name__ == "__main__":
    sys.exit(main())
