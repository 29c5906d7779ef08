"""Where trainers are registered, and their readings, also from Prometheus; `heapwatch ps` lists them."""

from __future__ import annotations

import argparse
import difflib
import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.limits import ALL_MEMORY
from heapwatch.analysis.readings import Readings
from heapwatch.discovery import addresses
from heapwatch.errors import Unreachable, UsageError, reason
from heapwatch.explain.findings import TimeLeft, foremost, range_text
from heapwatch.explain.received import exposed_explanation
from heapwatch.http.client import base_url, data_of, escaped, get_json, get_text, understood
from heapwatch.registration import folders
from heapwatch.runtime.plain_text import plain, say, say_json

AT_ONCE = 16
_ABSURD = 1e18  # neither bytes nor items; also what is no number
# Thousands of series; more would keep the parser busy for longer than the time between two samples.
MAX_METRICS_BYTES = 4 * 2**20
_LONGEST_CELL = 100


@dataclass(frozen=True)
class Sample:
    """The readings of one trainer at one time; `problem` says why there are none.

    `firing` are the alerts of Prometheus, None if it was not queried; `leak_fires`, whether one of them is
    about a leak.
    """

    instance: str
    time: float
    readings: Readings | None = None
    problem: str = ""
    firing: tuple[str, ...] | None = None
    leak_fires: bool = False


class TrainerSource:
    """Reads `/metrics` of all trainers in parallel, so one that does not answer does not delay the others."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = {url.partition("://")[2]: url for url in urls}

    def samples(self) -> list[Sample]:
        """Read every trainer now."""
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            return list(pool.map(self._sample, self._urls))

    def url_of(self, instance: str) -> str:
        """Return the address of a trainer."""
        return self._urls[instance]

    def _sample(self, instance: str) -> Sample:
        try:
            readings = read_metrics(self._urls[instance])
        except Unreachable as error:
            return Sample(instance, time.time(), problem=str(error))
        return Sample(instance, time.time(), readings)


class PrometheusSource:
    """Reads every trainer that Prometheus scrapes, with two queries, at the times of its scrapes."""

    def __init__(self, url: str, job: str, instances: Sequence[str] = ()) -> None:
        self._url = url
        self._job = job
        self._instances = frozenset(instances)

    def samples(self) -> list[Sample]:
        """Read every trainer of the job; Unreachable if Prometheus does not answer.

        The sample of a trainer that is down or missing has a `problem`.
        """
        selector = f'job="{escaped(self._job)}"'
        names = "trainer_.+|up|process_start_time_seconds|ALERTS|job:trainer:lost"
        families: dict[str, Metric] = {}
        with understood(self._url):
            scraped = self._query(f"timestamp(up{{{selector}}})")
            times = {labels.get("instance", ""): value for labels, value in scraped}
            for labels, value in self._query(f'{{__name__=~"{names}", {selector}}}'):
                instance = labels.pop("instance", "")
                family = families.setdefault(instance, Metric(instance, "", "unknown"))
                family.add_sample(labels.pop("__name__"), labels, value)
            lost = {instance for instance, family in families.items() if _lost(family)}
            wanted = self._instances or times.keys() | lost
            return [self._sample(instance, times, families) for instance in sorted(wanted)]

    def url_of(self, instance: str) -> str:
        """Return the address that Prometheus scrapes the trainer at."""
        answer = get_json(f"{self._url}/api/v1/targets", {"state": "active"})
        with understood(self._url):
            for target in data_of(answer).get("activeTargets", []):
                labels = target.get("labels", {})
                if labels.get("job") == self._job and labels.get("instance") == instance:
                    return str(target["scrapeUrl"]).rpartition("/metrics")[0]
        raise Unreachable(f"Prometheus does not scrape {instance}")

    def _sample(self, instance: str, times: dict[str, float], families: dict[str, Metric]) -> Sample:
        if instance not in times:
            cause = _lost(families[instance]) if instance in families else ""
            unknown = f"Prometheus scrapes no {instance} as job {self._job}"
            return Sample(
                instance, time.time(), problem=f"{instance} was lost: {cause}" if cause else unknown
            )
        readings = Readings([families[instance]] if instance in families else [])
        if readings.value("up") == 0:
            return Sample(instance, times[instance], problem=f"{instance} is down, as Prometheus reports")
        alerts = [labels for labels, _ in readings.samples("ALERTS") if labels.get("alertstate") == "firing"]
        return Sample(
            instance,
            times[instance],
            readings,
            firing=tuple(map(_described, alerts)),
            leak_fires=any(labels.get("kind") == "leak" for labels in alerts),
        )

    def _query(self, expression: str) -> list[tuple[dict[str, str], float]]:
        answer = get_json(f"{self._url}/api/v1/query", {"query": expression})
        return [
            ({str(name): str(value) for name, value in row["metric"].items()}, float(row["value"][1]))
            for row in data_of(answer).get("result", [])
        ]


SampleSource = TrainerSource | PrometheusSource


def _lost(family: Metric) -> str:
    """Why the trainer was lost; empty if it was not."""
    causes = (
        sample.labels.get("cause", "") for sample in family.samples if sample.name == "job:trainer:lost"
    )
    return next(causes, "")


def read_metrics(trainer: str) -> Readings:
    """Return the readings of a trainer's `/metrics`; Unreachable if it does not answer with metrics."""
    text = get_text(f"{trainer}/metrics", MAX_METRICS_BYTES)
    try:
        return Readings(text_string_to_metric_families(text))
    except (ValueError, LookupError):  # the parser raises both, depending on what is wrong
        raise Unreachable(
            f"{trainer}/metrics does not respond with metrics: is it a trainer's port?"
        ) from None


def _described(labels: Mapping[str, str]) -> str:
    about = " ".join(filter(None, (labels.get("resource"), labels.get("component"))))
    severity = labels.get("severity", "")
    return f"{severity.upper()}: {labels.get('alertname', '')} fires{about and f' ({about})'}"


def searched_folders() -> list[Path]:
    """Every folder in which a trainer of this user may be registered; UsageError where none can be named."""
    try:
        return folders()
    except OSError as error:
        raise UsageError(f"the folders of targets are not known: {reason(error)}") from None


def registered_trainers() -> list[str]:
    """The URLs of the registered trainers of this user; UsageError as for `searched_folders`."""
    found = (address for folder in searched_folders() for address in addresses(folder))
    return [base_url(address) for address in dict.fromkeys(found)]


def none_registered() -> str:
    """The message if no trainer is registered."""
    return f"no trainer is registered in {' or '.join(map(str, searched_folders()))}"


def url_of(source: str) -> str | None:
    """The URL of a process by its id, or of a trainer; None of a process that does not serve.

    Raises:
        Unreachable: there is no such process; else as `url_of_trainer`.

    """
    if source.isascii() and source.isdigit():
        return _url_of_process(int(source))
    return url_of_trainer(source)


def url_of_trainer(text: str) -> str:
    """The URL of a trainer that is given by its host and port, its URL or its registered name.

    Raises:
        Unreachable: none is registered by this name, or several are; the message names what there is.
        UsageError: it is not a valid address.

    """
    return base_url(text if any(mark in text for mark in ":./") or text == "localhost" else _address_of(text))


def _url_of_process(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        raise Unreachable(f"there is no process {pid}") from None
    except PermissionError:
        return None
    return next((base_url(at) for folder in searched_folders() for at in addresses(folder, pid)), None)


def _address_of(name: str) -> str:
    known: dict[str, list[str]] = {}
    for sample in TrainerSource(registered_trainers()).samples():
        if sample.readings is not None:
            called = sample.readings.labels("trainer_info").get("trainer", "")
            known.setdefault(called, []).append(sample.instance)
    found = known.get(name, [])
    if len(found) > 1:
        raise Unreachable(f"{len(found)} trainers are called {name}: give the address, {' or '.join(found)}")
    if not found:
        near = difflib.get_close_matches(name, known, n=1)
        meant = f"did you mean {near[0]}?" if near else f"there is {', '.join(sorted(known)) or 'none'}"
        raise Unreachable(f"no trainer is registered as {name}; {meant} (or give host:port)")
    return found[0]


def mapping(value: Any) -> dict[str, Any]:
    """A received JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float | None:
    """A received number; None for anything else, and for values that no level can have."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _ABSURD
    return float(value) if known else None


@dataclass(frozen=True)
class ListedTrainer:
    """One trainer; unknown values are None. Memory is that of trainer and workers, in bytes.

    `grows` is the path, or the type, that the verdict is about, or else grows most; `line` fills it.
    """

    trainer: str | None
    address: str
    verdict: str | None
    time_to_limit_seconds: dict[str, float] | None
    grows: str | None
    bytes_per_minute: float | None
    line: str | None
    memory_bytes: float | None
    workers: int | None
    steps: float | None
    cleanups: float | None
    problem: str


def add_parser(commands: Any) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "ps",
        help="list the trainers of this machine",
        description="List the trainers that are registered as targets of this user.",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per trainer")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the addresses")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line per trainer; returns 0 even if there is none."""
    rows = [_row(sample) for sample in TrainerSource(registered_trainers()).samples()]
    if arguments.json:
        say_json([asdict(row) for row in rows])
    elif arguments.quiet:
        say(*(row.address for row in rows))
    elif not rows:
        say(f"{none_registered()}; start one, or see `heapwatch doctor`")
    else:
        say(*_lines(rows))
    return 0


def _row(sample: Sample) -> ListedTrainer:
    try:
        return _understood(sample)
    except (ValueError, ArithmeticError):  # a number of workers that is none, for example
        return _understood(replace(sample, readings=None, problem="its response is invalid"))


def _understood(sample: Sample) -> ListedTrainer:
    readings = sample.readings or Readings([])
    memory = readings.levels().get(ALL_MEMORY)
    processes = readings.by("trainer_processes", "role")
    steps = readings.by("trainer_progress_total", "unit").get("step")
    cleanups = sum(readings.by("trainer_cleanups_total", "action").values())
    if not all(map(math.isfinite, (memory or 0.0, steps or 0.0, cleanups))):
        raise ValueError("a level that is no number")
    explanation = exposed_explanation(readings)
    first = foremost(explanation) if explanation else None
    left = explanation.time_left if explanation else None
    return ListedTrainer(
        trainer=readings.labels("trainer_info").get("trainer"),
        address=sample.instance,
        verdict=explanation.verdict if explanation else None,
        time_to_limit_seconds=left._asdict() if left else None,
        grows=(first.path or first.type) if first else None,
        bytes_per_minute=first.bytes_per_minute if first else None,
        line=f"{first.site.file}:{first.site.line}" if first and first.site else None,
        memory_bytes=memory,
        workers=int(processes.get("worker", 0)) if processes else None,
        steps=steps,
        cleanups=cleanups if sample.readings else None,
        problem=sample.problem,
    )


def _lines(rows: list[ListedTrainer]) -> list[str]:
    table = [("TRAINER", "ADDRESS", "VERDICT", "LEFT", "MEMORY", "WORKERS", "STEPS", "CLEANUPS", "GROWS")]
    table += [
        (
            row.trainer or "?",
            row.address,
            row.verdict or "",
            range_text(TimeLeft(**row.time_to_limit_seconds)) if row.time_to_limit_seconds else "",
            _cell(row.memory_bytes, 1e6, " MB"),
            _cell(row.workers),
            _cell(row.steps),
            _cell(row.cleanups),
            row.problem or _growth(row),
        )
        for row in rows
    ]
    return aligned([[plain(cell, _LONGEST_CELL) for cell in line] for line in table])


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """The rows of a table as lines with columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def _growth(row: ListedTrainer) -> str:
    if row.grows is None:
        return ""
    rate = f" {row.bytes_per_minute / 1e6:+,.1f} MB/min" if row.bytes_per_minute else ""
    return f"{row.grows}{rate}{f' ({row.line})' if row.line else ''}"


def _cell(value: float | None, unit: float = 1, name: str = "") -> str:
    return "" if value is None else f"{value / unit:,.0f}{name}"
