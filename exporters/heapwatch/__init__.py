"""Heapwatch: find memory leaks in reinforcement-learning trainers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heapwatch.lifecycle import start
    from heapwatch.watch import Watch

__all__ = ["Watch", "start"]

_MODULES = {
    "start": "heapwatch.lifecycle",
    "Watch": "heapwatch.watch",
    # what `%load_ext heapwatch` calls
    "load_ipython_extension": "heapwatch.notebook.extension",
    "unload_ipython_extension": "heapwatch.notebook.extension",
}


def __getattr__(name: str) -> Any:
    # The stack and the commands share this package and need no exporter: it is loaded on first use.
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
