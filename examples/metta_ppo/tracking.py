"""Memory tracking with the original's options: from YAML, from keywords, or from `trainer.NAME=VALUE`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import yaml

PREFIX = "trainer."


@dataclass(frozen=True)
class MemoryTracking:
    """The document's options and their defaults.

    Attributes:
        memory_tracking_enabled: whether anything is watched.
        memory_report_interval: epochs between two reports in the log.
        memory_leak_threshold_mb: growth of an object an epoch from which on it is reported, in 1e6 bytes.

    """

    memory_tracking_enabled: bool = True
    memory_report_interval: int = 100
    memory_leak_threshold_mb: float = 5.0

    @classmethod
    def from_yaml(cls, path: Path) -> "MemoryTracking":
        """The options under `trainer:`; others there are not ours.

        Raises:
            ValueError: one of ours has a value of another type.

        """
        trainer = (yaml.safe_load(path.read_text()) or {}).get("trainer") or {}
        known = {field.name for field in fields(cls)}
        return cls().changed({name: value for name, value in trainer.items() if name in known})

    def overridden(self, settings: Iterable[str]) -> "MemoryTracking":
        """These options with `trainer.NAME=VALUE` settings applied.

        Raises:
            ValueError: for a setting that is none of ours.

        """
        values = {}
        for setting in settings:
            name, _, value = setting.partition("=")
            if not name.startswith(PREFIX):
                raise ValueError(f"{setting!r}: write {PREFIX}NAME=VALUE")
            values[name.removeprefix(PREFIX)] = yaml.safe_load(value)
        return self.changed(values)

    def changed(self, values: Mapping[str, Any]) -> "MemoryTracking":
        """These options with other values.

        Raises:
            ValueError: an unknown name, or a value of another type.

        """
        for name, value in values.items():
            if name not in {field.name for field in fields(self)}:
                allowed = ", ".join(field.name for field in fields(self))
                raise ValueError(f"no option is called {name!r}; allowed: {allowed}")
            wanted = (int, float) if name == "memory_leak_threshold_mb" else type(getattr(self, name))
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                raise ValueError(f"{name} cannot be {value!r}")
        return replace(self, **values)
