"""Named sources, each read separately: a failure affects only the series of that source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from heapwatch.runtime.failures import Failures, is_trainers
from heapwatch.runtime.labels import MAX_NAMES
from heapwatch.runtime.sources import Source, SourceGone

Value = TypeVar("Value")


class NamedSources:
    """The sources of one collector, at most `limit`; further ones are counted and not read."""

    def __init__(self, collector: str, failures: Failures, limit: int = MAX_NAMES) -> None:
        self._limit = limit
        self._refused = 0
        self._collector = collector
        self._failures = failures
        self._sources: dict[str, Source] = {}
        self._gone: set[str] = set()

    def register(self, name: str, source: Source) -> None:
        """Read `source` as `name` from now on."""
        if len(self._sources) < self._limit:
            self._sources[name] = source
        else:
            self._refused += 1
            self._failures.record_left_out(self._collector, self._refused)

    def read(self, convert: Callable[[str, Any], Value]) -> dict[str, Value]:
        """The result of `convert` for each readable source. A source whose object died is counted once."""
        values = {}
        for name, source in list(self._sources.items()):
            try:
                values[name] = convert(name, source.read())
                self._gone.discard(name)
            except SourceGone as gone:
                if name not in self._gone:
                    self._gone.add(name)
                    self._failures.record(self._collector, name, gone)
            except BaseException as error:
                if is_trainers(error):
                    raise
                self._failures.record(self._collector, name, error)
        return values
