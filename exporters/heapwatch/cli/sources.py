"""Finds the registered trainers of this machine, and reads several of them in parallel."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from heapwatch.discovery import addresses, processes
from heapwatch.errors import Unreachable, UsageError, reason
from heapwatch.http.client import base_url
from heapwatch.registration import folders

_AT_ONCE = 16
Read = TypeVar("Read")


def read_all(urls: Sequence[str], read: Callable[[str], Read]) -> list[Read]:
    """Call `read` for each URL in parallel, so that one slow trainer does not delay the others."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, urls))


def searched_folders() -> list[Path]:
    """Return the folders in which trainers of this user register; raise UsageError if there is none."""
    try:
        return folders()
    except OSError as error:
        raise UsageError(f"the folders of targets are not known: {reason(error)}") from None


def registered_trainers() -> list[str]:
    """Return the URLs of the registered trainers of this user; UsageError as for `searched_folders`."""
    return [base_url(address) for address in _registered()]


def registered_processes() -> dict[int, str]:
    """Return the URLs of watched processes by process id; UsageError as for `searched_folders`."""
    return {
        pid: base_url(address) for folder in searched_folders() for pid, address in processes(folder).items()
    }


def _registered(**criteria: Any) -> list[str]:
    """Return the addresses that `discovery.addresses` finds in all folders, without duplicates."""
    registered = (address for folder in searched_folders() for address in addresses(folder, **criteria))
    return list(dict.fromkeys(registered))


def url_of(source: str) -> str | None:
    """Return the URL of a trainer or of a process id; None if the process does not serve.

    Raises:
        Unreachable: there is no such process, or see `url_of_trainer`.

    """
    if source.isascii() and source.isdigit():
        return _url_of_process(int(source))
    return url_of_trainer(source)


def url_of_trainer(text: str) -> str:
    """Return the URL of a trainer from its host and port, its URL or its registered name.

    Raises:
        Unreachable: no trainer or more than one has this name; the message lists the addresses.
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
    return next((base_url(address) for address in _registered(pid=pid)), None)


def _address_of(name: str) -> str:
    urls = _registered(trainer=name)
    if len(urls) > 1:
        raise Unreachable(f"{len(urls)} trainers are called {name}: give the address, {' or '.join(urls)}")
    if not urls:
        raise Unreachable(f"no trainer is registered as {name}; `heapwatch top --once` lists those there are")
    return urls[0]
