"""What the machine did lately, as the trainer keeps it for its own plots."""

from collections import deque

import psutil

KEPT = 1000


class SystemMonitor:
    """The newest readings of CPU and memory use."""

    def __init__(self) -> None:
        self._metrics: dict[str, deque[float]] = {name: deque(maxlen=KEPT) for name in ("cpu", "memory")}

    def observe(self) -> None:
        """Take a reading, in percent."""
        self._metrics["cpu"].append(psutil.cpu_percent())
        self._metrics["memory"].append(psutil.virtual_memory().percent)
