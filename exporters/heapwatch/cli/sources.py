"""The trainers of this machine: where they are registered, and what is read of them."""

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
    """What `read` returns for each, in parallel: one that does not answer does not delay the others."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, urls))


def searched_folders() -> list[Path]:
    """Every folder in which a trainer of this user may be registered; UsageError where none can be named."""
    try:
        return folders()
    except OSError as error:
        raise UsageError(f"the folders of targets are not known: {reason(error)}") from None


def registered_trainers() -> list[str]:
    """The URLs of the registered trainers of this user; UsageError as for `searched_folders`."""
    return [base_url(address) for address in _registered()]


def registered_processes() -> dict[int, str]:
    """The URLs of the watched processes of this machine, by process id; UsageError as for the others."""
    return {
        pid: base_url(address) for folder in searched_folders() for pid, address in processes(folder).items()
    }


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
