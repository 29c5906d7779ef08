"""`heapwatch monitor --live`: all trainers on one screen, redrawn at each sample."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from heapwatch.analysis.verdict import SERIOUS, Word
from heapwatch.cli.reporter import Message, Reporter, body_types, described
from heapwatch.cli.sources import Sample
from heapwatch.errors import UsageError

try:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from heapwatch.runtime.console import console as made_console
    from heapwatch.runtime.console import literal
except ImportError as error:
    raise UsageError("--live needs rich: pip install 'heapwatch[cli]'") from error

_COLORS = {
    "ok": "green",
    "warning": "yellow",
    "critical": "red",
    "emergency": "bold red",
    "unknown": "magenta",
}
_BARS = "▁▂▃▄▅▆▇█"
_POINTS = 40
_KEPT_NEWS = 200
_MOST_GROWING = 4  # lines for each trainer


class Watched(Protocol):
    """The content of the screen: the latest sample of each trainer, and its alerts."""

    @property
    def samples(self) -> Sequence[Sample]:
        """The latest sample of each trainer."""

    @property
    def reporters(self) -> Mapping[str, Reporter]:
        """Reporters by instance."""


class LiveView:
    """The alternate screen of a terminal: trainers, their alerts, what grows in them, the latest messages."""

    def __init__(self, *, interval: float, console: Console | None = None) -> None:
        self._interval = interval
        self._console = console or made_console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._memory: dict[str, deque[float]] = {}
        self._news: deque[Message] = deque(maxlen=_KEPT_NEWS)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._live.stop()

    def show(self, messages: Iterable[Message], monitor: Watched) -> None:
        """Redraw with the monitor's latest samples."""
        self._news.extend(message for message in messages if not message.routine)
        for instance in self._memory.keys() - monitor.reporters.keys():
            del self._memory[instance]
        self._live.update(self._screen(monitor), refresh=True)

    def _screen(self, monitor: Watched) -> Group:
        table = Table(box=None, header_style="dim", padding=(0, 3, 0, 0))
        for column in ("trainer", "state", "verdict", "memory", "", "bodies", "body types", "steps"):
            table.add_column(column, justify="right" if column in ("memory", "bodies", "steps") else "left")
        alerts = []
        for sample in monitor.samples:
            reporter = monitor.reporters[sample.instance]
            table.add_row(*self._row(sample, reporter.severity, reporter.verdict))
            if sample.readings is None:
                alerts.append(literal(f"{sample.instance}  {sample.problem}", _COLORS["unknown"]))
                continue
            for alert in monitor.reporters[sample.instance].alerts:
                alerts.append(literal(f"{sample.instance}  {described(alert)}", _COLORS[alert.severity]))
        growth, lines = self._growth(monitor)
        free = max(3, self._console.height - len(monitor.samples) - max(1, len(alerts)) - lines - 10)
        title = f"heapwatch  {time.strftime('%H:%M:%S')}  every {self._interval:g} s, Ctrl-C ends"
        standing = Group(*(alerts or [literal("none", "green")]))
        return Group(
            Panel(table, title=title, title_align="left"),
            Panel(standing, title="over their limits", title_align="left"),
            Panel(growth, title="what grows", title_align="left"),
            Panel(self._messages(free), title="messages", title_align="left"),
        )

    def _growth(self, monitor: Watched) -> tuple[Table | Text, int]:
        table = Table.grid(padding=(0, 3, 0, 0))
        for justify in ("left", "left", "right", "right"):
            table.add_column(justify=justify)
        for sample in monitor.samples:
            growing = monitor.reporters[sample.instance].growing(sample.readings) if sample.readings else []
            for one in growing[:_MOST_GROWING]:
                level, rate = one.described
                cells = ((sample.instance, "dim"), (one.name, ""), (level, ""), (rate, "yellow"))
                table.add_row(*(literal(*cell) for cell in cells))
        if not table.row_count:
            return literal("nothing, or watched for less than two minutes", "dim"), 1
        return table, table.row_count

    def _messages(self, count: int) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for message in list(self._news)[-count:]:
            cells = ((message.clock, "dim"), (message.instance, "dim"), (message.text, ""))
            table.add_row(*(literal(*cell) for cell in cells))
        return table

    def _row(self, sample: Sample, severity: str, verdict: Word | None) -> list[Text]:
        name, state = literal(sample.instance), literal(severity, _COLORS[severity])
        if sample.readings is None:
            return [name, state]
        resident = sample.readings.value("trainer_process_resident_memory_bytes", role="trainer")
        bodies = sample.readings.by("trainer_bodies", "type")
        steps = sample.readings.value("trainer_progress_total", unit="step")
        history = self._memory.setdefault(sample.instance, deque(maxlen=_POINTS))
        if resident is not None:
            history.append(resident)
        return [
            name,
            state,
            literal(verdict or "", _COLORS["critical" if verdict in SERIOUS else "ok"]),
            literal("" if resident is None else f"{resident / 1e6:,.1f} MB"),
            literal(sparkline(history), "cyan"),
            literal(f"{sum(bodies.values()):,.0f}" if bodies else ""),
            literal(body_types(sample.readings).removeprefix("Body types: "), "dim"),
            literal("" if steps is None else f"{steps:,.0f}"),
        ]


def sparkline(values: Iterable[float]) -> str:
    """Return one bar for each value, scaled from the least to the greatest."""
    known = list(values)
    if not known:
        return ""
    low, high = min(known), max(known)
    span = max(high - low, 0.01 * high, 1e-9)
    return "".join(_BARS[int((value - low) / span * (len(_BARS) - 1))] for value in known)
