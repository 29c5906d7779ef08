"""Finds a trainer of this user by its process id or by its name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from heapwatch.cli.sources import TrainerSource
from heapwatch.discovery import addresses, addresses_of
from heapwatch.errors import Unreachable, UsageError, reason
from heapwatch.http.client import base_url
from heapwatch.registration import folders


def searched_folders() -> list[Path]:
    """Every folder in which a trainer of this user may be registered; UsageError where none can be named."""
    try:
        return folders()
    except OSError as error:
        raise UsageError(f"the folders of targets are not known: {reason(error)}") from None


def is_address(text: str) -> bool:
    """Whether a text is a host, with a port or as a URL, and no name of a trainer."""
    return any(mark in text for mark in ":./") or text == "localhost"


def address_of_process(pid: int) -> str | None:
    """The address that a process of this user serves at; None where it does not.

    Raises:
        Unreachable: there is no such process.

    """
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        raise Unreachable(f"there is no process {pid}") from None
    except PermissionError:
        return None
    found = [address for folder in searched_folders() for address in addresses_of(folder, pid)]
    return found[0] if found else None


def address_of_name(name: str) -> str:
    """The address of the one registered trainer of this name.

    Raises:
        Unreachable: there is none, or several; the message names what there is.

    """
    known: dict[str, list[str]] = {}
    registered = dict.fromkeys(address for folder in searched_folders() for address in addresses(folder))
    for sample in TrainerSource([base_url(address) for address in registered]).samples():
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
