"""Heapwatch: find memory leaks in reinforcement-learning trainers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heapwatch.collectors.progress import Phase
    from heapwatch.lifecycle import start
    from heapwatch.measure.objects.tracked import Large
    from heapwatch.recording.checkpoints import Checkpoint, CheckpointGrowth
    from heapwatch.runtime.cleanup import CleanupResult
    from heapwatch.watch import Watch

    __version__: str

__all__ = ["Checkpoint", "CheckpointGrowth", "CleanupResult", "Large", "Phase", "Watch", "start"]

_MODULES = {
    "start": "heapwatch.lifecycle",
    "Watch": "heapwatch.watch",
    # what its methods return
    "Checkpoint": "heapwatch.recording.checkpoints",
    "CheckpointGrowth": "heapwatch.recording.checkpoints",
    "CleanupResult": "heapwatch.runtime.cleanup",
    "Large": "heapwatch.measure.objects.tracked",
    "Phase": "heapwatch.collectors.progress",
    # what `%load_ext heapwatch` calls
    "load_ipython_extension": "heapwatch.notebook.extension",
    "unload_ipython_extension": "heapwatch.notebook.extension",
}


def __getattr__(name: str) -> Any:
    # The stack and the commands share this package and need no exporter: it is loaded on first use.
    if name == "__version__":
        from importlib import metadata

        try:
            return metadata.version("heapwatch")
        except metadata.PackageNotFoundError:  # a clone that is not installed
            return "unknown"
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if sys.platform == "win32":
        raise ImportError("heapwatch runs on Linux and macOS; on Windows it runs in WSL 2")
    import importlib

    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
