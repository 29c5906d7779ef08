"""The sources of the monitor's samples: the trainers, or the Prometheus that scrapes them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.readings import Readings
from heapwatch.errors import Unreachable
from heapwatch.http.client import data_of, escaped, get_json, get_text, understood

_AT_ONCE = 16
# Thousands of series; more would keep the parser busy for longer than the time between two samples.
MAX_METRICS_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Sample:
    """The readings of one trainer at one time; `problem` says why there are none.

    `firing` are the alerts of Prometheus, None where no Prometheus was asked; `leak_fires`, whether one of
    them is about a leak.
    """

    instance: str
    time: float
    readings: Readings | None = None
    problem: str = ""
    firing: tuple[str, ...] | None = None
    leak_fires: bool = False


class SampleSource(Protocol):
    """Yields the latest sample of each trainer."""

    def samples(self) -> list[Sample]:
        """Read now.

        Raises:
            Unreachable: the source itself does not answer.

        """

    def url_of(self, instance: str) -> str:
        """Return the base URL at which a trainer takes a cleanup.

        Raises:
            Unreachable: it is not known.

        """


class TrainerSource:
    """Reads `/metrics` of all trainers in parallel, so that one that hangs does not delay the others."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = {url.partition("://")[2]: url for url in urls}

    def samples(self) -> list[Sample]:
        """Read every trainer now."""
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
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
        """Read every trainer of the job; the sample of one that is down or missing has a `problem`.

        Raises:
            Unreachable: Prometheus does not answer.

        """
        with understood(self._url):
            return self._samples()

    def _samples(self) -> list[Sample]:
        selector = f'job="{escaped(self._job)}"'
        scraped = self._query(f"timestamp(up{{{selector}}})")
        times = {labels.get("instance", ""): value for labels, value in scraped}
        names = "trainer_.+|up|process_start_time_seconds|ALERTS|job:trainer:lost"
        families: dict[str, Metric] = {}
        for labels, value in self._query(f'{{__name__=~"{names}", {selector}}}'):
            instance = labels.pop("instance", "")
            family = families.setdefault(instance, Metric(instance, "", "unknown"))
            family.add_sample(labels.pop("__name__"), labels, value)
        wanted = self._instances or times.keys() | {one for one, family in families.items() if _lost(family)}
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


def _lost(family: Metric) -> str:
    """Why the trainer was lost; empty if it was not."""
    causes = (
        sample.labels.get("cause", "") for sample in family.samples if sample.name == "job:trainer:lost"
    )
    return next(causes, "")


def read_metrics(trainer: str) -> Readings:
    """Return the readings of a trainer's `/metrics`.

    Raises:
        Unreachable: it does not answer, or not with metrics.

    """
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
