"""The trainers of this machine: where they are registered, and their readings."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from heapwatch.analysis.readings import Readings
from heapwatch.discovery import addresses
from heapwatch.errors import Unreachable, UsageError, reason
from heapwatch.http.client import base_url, get_text
from heapwatch.registration import folders

AT_ONCE = 16
# Thousands of series; more would keep the parser busy for longer than the time between two samples.
MAX_METRICS_BYTES = 4 * 2**20


@dataclass(frozen=True)
class Sample:
    """The readings of one trainer at one time; `problem` says why there are none."""

    instance: str
    time: float
    readings: Readings | None = None
    problem: str = ""


class TrainerSource:
    """Reads `/metrics` of all trainers in parallel, so one that does not answer does not delay the others.

    Attributes:
        urls: by instance, such as `127.0.0.1:7777`.

    """

    def __init__(self, urls: Sequence[str]) -> None:
        self.urls = {url.partition("://")[2]: url for url in urls}

    def samples(self) -> list[Sample]:
        """Read every trainer now."""
        with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
            return list(pool.map(self._sample, self.urls))

    def _sample(self, instance: str) -> Sample:
        try:
            readings = read_metrics(self.urls[instance])
        except Unreachable as error:
            return Sample(instance, time.time(), problem=str(error))
        return Sample(instance, time.time(), readings)


def read_metrics(trainer: str) -> Readings:
    """Return the readings of a trainer's `/metrics`; Unreachable if it does not answer with metrics."""
    text = get_text(f"{trainer}/metrics", MAX_METRICS_BYTES)
    try:
        return Readings(text_string_to_metric_families(text))
    except (ValueError, LookupError):  # the parser raises both, depending on what is wrong
        raise Unreachable(
            f"{trainer}/metrics does not respond with metrics: is it a trainer's port?"
        ) from None


def searched_folders() -> list[Path]:
    """Every folder in which a trainer of this user may be registered; UsageError where none can be named."""
    try:
        return folders()
    except OSError as error:
        raise UsageError(f"the folders of targets are not known: {reason(error)}") from None


def registered_trainers() -> list[str]:
    """The URLs of the registered trainers of this user; UsageError as for `searched_folders`."""
    return [base_url(address) for address in _registered()]


def _registered(**wanted: Any) -> list[str]:
    """The addresses of the trainers that `discovery.addresses` finds, each once."""
    found = (address for folder in searched_folders() for address in addresses(folder, **wanted))
    return list(dict.fromkeys(found))


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
    return next((base_url(at) for at in _registered(pid=pid)), None)


def _address_of(name: str) -> str:
    found = _registered(trainer=name)
    if len(found) > 1:
        raise Unreachable(f"{len(found)} trainers are called {name}: give the address, {' or '.join(found)}")
    if not found:
        raise Unreachable(f"no trainer is registered as {name}; `heapwatch top --once` lists those there are")
    return found[0]
