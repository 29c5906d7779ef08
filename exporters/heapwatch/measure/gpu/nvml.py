"""A connection to NVIDIA's management library, and the GPUs that this process may use."""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Mapping
from typing import Any

log = logging.getLogger("heapwatch")

# An index as NVML counts, or a UUID (of a MIG instance too; of a GPU also the beginning of it).
DeviceName = int | str


class NvmlSession:
    """A connection to NVML that is reopened after a driver restart.

    Args:
        library: the module `pynvml`; imported if it is not given.
        environment: the environment with `CUDA_VISIBLE_DEVICES`.

    """

    def __init__(self, library: Any = None, environment: Mapping[str, str] = os.environ) -> None:
        self.library = library
        self._environment = environment
        self._connected = False
        self._worked = False
        self._missing = False

    def devices(self) -> list[DeviceName]:
        """The devices that this process may use, in CUDA's order; none without library, driver or GPU.

        Raises:
            NVMLError: the library worked before and does not now.

        """
        if not self._connect():
            return []
        count = int(self.library.nvmlDeviceGetCount())
        return visible_devices(self._environment.get("CUDA_VISIBLE_DEVICES"), count)

    def handle(self, name: DeviceName) -> Any:
        """The library's handle of a device.

        Raises:
            NVMLError: the device is lost, or unknown.

        """
        if isinstance(name, int):
            return self.library.nvmlDeviceGetHandleByIndex(name)
        if name.startswith("MIG-"):
            return self.library.nvmlDeviceGetHandleByUUID(name)
        for index in range(self.library.nvmlDeviceGetCount()):
            handle = self.library.nvmlDeviceGetHandleByIndex(index)
            if as_text(self.library.nvmlDeviceGetUUID(handle)).startswith(name):
                return handle
        raise self.library.NVMLError(self.library.NVML_ERROR_NOT_FOUND)

    def disconnect(self) -> None:
        """Close the connection: the next reading opens a new one."""
        if not self._connected:
            return
        self._connected = False
        try:
            self.library.nvmlShutdown()
        except self.library.NVMLError:
            log.debug("nvmlShutdown failed")

    def _connect(self) -> bool:
        if self._connected or self._missing:
            return self._connected
        try:
            self.library = self.library or importlib.import_module("pynvml")
        except ImportError:
            return self._is_missing("nvidia-ml-py is not installed (pip install 'heapwatch[gpu]')")
        try:
            self.library.nvmlInit()
        except self.library.NVMLError as error:
            if self._worked:
                raise
            return self._is_missing(str(error))
        self._connected = self._worked = True
        return True

    def _is_missing(self, reason: str) -> bool:
        self._missing = True
        log.debug("no series of whole GPUs: %s", reason)  # most machines have none
        return False


def visible_devices(setting: str | None, count: int) -> list[DeviceName]:
    """The devices that `CUDA_VISIBLE_DEVICES` selects of `count` devices, in its order.

    Like CUDA, it ignores everything after the first entry that is no device.
    """
    if setting is None:
        return list(range(count))
    names: list[DeviceName] = []
    for entry in map(str.strip, setting.split(",")):
        if entry.startswith(("GPU-", "MIG-")):
            names.append(entry)
        elif entry.isdecimal() and int(entry) < count:
            names.append(int(entry))
        else:
            break
    return names


def as_text(value: str | bytes) -> str:
    """A name from the library, which older versions give as bytes."""
    return value.decode() if isinstance(value, bytes) else value
