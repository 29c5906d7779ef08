"""Leaks that can be switched on and off while a trainer runs.

The state is one small JSON file, `{"static": 30.0, ...}`: units per minute for each leak that is on.
A trainer reads it about once a second; anyone may write it with `write()`, which replaces it atomically.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from heapwatch.runtime.own_files import make_private, read_json, replace

_ROUNDING = 1e-9  # what hundreds of steps add up to may be this much less than a whole unit


def leak_file(trainer: str, state: Path | None = None) -> Path:
    """Where the leak switches of the example `trainer` are kept; `state` defaults to HEAPWATCH_STATE."""
    folder = state or Path(os.environ.get("HEAPWATCH_STATE", ".heapwatch"))
    return folder / "run" / f"{trainer}-leaks.json"


def parse(settings: Iterable[str], allowed: Mapping[str, str]) -> dict[str, float]:
    """Read `name=rate` settings (units per minute) into a dict.

    `allowed` maps each leak's name to what one unit of it is.
    Raises ValueError naming what was wrong and what is allowed.
    """
    rates = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        if name not in allowed:
            choices = ", ".join(f"{known} ({unit})" for known, unit in allowed.items())
            raise ValueError(f"no leak is called {name!r}; allowed: {choices}")
        try:
            rate = float(text)
        except ValueError:
            rate = -1.0
        if not 0 <= rate < 1e9:
            raise ValueError(
                f"{setting!r}: write {name}=RATE, a number of {allowed[name]} per minute, 0 or more"
            )
        rates[name] = rate
    return rates


def write(path: Path, rates: Mapping[str, float]) -> None:
    """Replace the switches in `path` at once, so that no reader sees half a file."""
    make_private(path.parent)
    replace(path, json.dumps({name: rate for name, rate in rates.items() if rate > 0}))


class LeakSwitches:
    """The leaks that are on, and how many units of each are due.

    Args:
        path: the file with the switches; need not exist.
        allowed: name of each leak -> what one unit of it is.
        clock: seconds, monotonic; of work done where a leak has to be the same an epoch on any machine.

    """

    def __init__(
        self, path: Path, allowed: Mapping[str, str], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._allowed = allowed
        self._clock = clock
        self._refreshed = self._counted = clock()
        self._stamp = 0
        self._owed: dict[str, float] = {}
        self.rates: dict[str, float] = {}
        self.refresh()

    def refresh(self) -> None:
        """Read the switches again if the file has changed; a broken file changes nothing but says so."""
        try:
            stamp = self._path.lstat().st_mtime_ns
        except OSError:
            return
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            rates = read_json(self._path)
            self.rates = parse([f"{name}={rate}" for name, rate in rates.items()], self._allowed)
        except (OSError, ValueError, AttributeError) as problem:
            print(f"leak switches in {self._path} ignored: {problem}", flush=True)
        else:
            print(f"leaks on, units per minute: {self.rates or 'none'}", flush=True)

    def apply(self, leaks: object, *arguments: object) -> None:
        """Call `_leak_NAME(*arguments, units)` of `leaks` for each leak that is due."""
        for name, units in self.due().items():
            if units:
                getattr(leaks, f"_leak_{name}")(*arguments, units)

    def due(self) -> dict[str, int]:
        """Whole units of each leak that have become due since the last call."""
        now = self._clock()
        if now - self._refreshed >= 1.0:
            self._refreshed = now
            self.refresh()
        minutes, self._counted = (now - self._counted) / 60, now
        units = {}
        for name, rate in self.rates.items():
            owed = self._owed.get(name, 0.0) + rate * minutes
            units[name] = int(owed + _ROUNDING)
            self._owed[name] = owed - units[name]
        return units
