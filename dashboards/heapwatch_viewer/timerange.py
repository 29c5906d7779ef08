"""The time range of a page: relative (`now-6h` to `now`) or absolute (milliseconds)."""

import re
import time
from dataclasses import dataclass

from heapwatch_viewer.units import UNITS, write

# At most so many digits: each of these is a time that Python knows.
_RELATIVE = re.compile(r"now(?:-([0-9]{1,5})([smhdw]))?")
_MILLISECONDS = re.compile(r"[0-9]{1,14}")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
SCRAPE_INTERVAL = 15  # seconds; as in prometheus.yml

PRESETS = {
    "now-5m": "5 minutes",
    "now-15m": "15 minutes",
    "now-30m": "30 minutes",
    "now-1h": "1 hour",
    "now-3h": "3 hours",
    "now-6h": "6 hours",
    "now-12h": "12 hours",
    "now-24h": "24 hours",
    "now-2d": "2 days",
    "now-7d": "7 days",
    "now-30d": "30 days",
}


def seconds_of(text: str) -> int:
    """A duration such as `30s` or `5m` in seconds; 0 for a variable, which the step then decides."""
    match = re.match(r"^(\d+)([smhdw])$", text)
    return int(match[1]) * _SECONDS[match[2]] if match else 0


def _moment(text: str, now: float) -> float:
    if match := _RELATIVE.fullmatch(text):
        amount, unit = match.groups()
        return now - int(amount) * _SECONDS[unit] if amount else now
    if _MILLISECONDS.fullmatch(text):
        return int(text) / 1000
    raise ValueError(f"{text!r} is not a time: write now, now-6h (s, m, h, d, w) or milliseconds since 1970")


@dataclass(frozen=True)
class TimeRange:
    """Start and end, as written in the address of the page."""

    start: str = "now-6h"
    end: str = "now"

    def __post_init__(self) -> None:
        """Raise ValueError when an end is malformed or the range is empty."""
        begin, finish = self.seconds(time.time())
        if begin >= finish:
            raise ValueError(f"the range {self.start} to {self.end} is empty")

    def seconds(self, now: float) -> tuple[float, float]:
        """Both ends in seconds since 1970."""
        return _moment(self.start, now), _moment(self.end, now)

    def label(self) -> str:
        """What the time picker shows: a preset, else the length; the axes of the charts have the times."""
        if self.end == "now" and self.start in PRESETS:
            return f"Last {PRESETS[self.start]}"
        start, end = self.seconds(time.time())
        return f"{write(end - start, UNITS['s'])} of your choice"


@dataclass(frozen=True)
class Window:
    """A time range for one refresh, aligned to the step so that graphs do not jitter.

    Attributes:
        start, end: seconds since 1970.
        step: seconds between two points.

    """

    start: float
    end: float
    step: int

    @classmethod
    def of(cls, span: TimeRange, points: int, now: float) -> "Window":
        """The window of `span` at `now` with about `points` points."""
        start, end = span.seconds(now)
        return cls(start, end, 1).with_step(max(SCRAPE_INTERVAL, round((end - start) / points)))

    def with_step(self, least: int) -> "Window":
        """The same window with a step of at least `least` seconds."""
        step = max(self.step, least)
        return Window(self.start // step * step, self.end // step * step, step)

    @property
    def rate_interval(self) -> int:
        """Grafana's `$__rate_interval` in seconds: max(step + scrape interval, 4 scrape intervals)."""
        return max(self.step + SCRAPE_INTERVAL, 4 * SCRAPE_INTERVAL)
