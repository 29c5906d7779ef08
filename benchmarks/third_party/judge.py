"""What is wrong with a run, in words: nothing, or one line for each thing."""

from __future__ import annotations

from benchmarks.third_party.catalog import Leak, Stranger
from benchmarks.third_party.observation import Observation

# Of a healthy process: where it serves, that a stack came, its verdict, and the one at its end.
MOST_NOTICES = 4


def problems(stranger: Stranger, seen: Observation) -> list[str]:
    """Everything that must not be: of any run, and of a healthy or of a leaking one."""
    wrong = _starting(stranger, seen) + [f"traceback: {line}" for line in seen.tracebacks]
    if seen.exit_code not in (0, None):
        wrong.append(f"exit code {seen.exit_code}")
    if seen.leaking:
        return wrong + _missed(stranger.leak, seen)
    wrong += [f"alert: {alert}" for alert in seen.alerts] + [f"log: {line}" for line in seen.log]
    if len(seen.notices) > MOST_NOTICES * stranger.endpoints:
        wrong.append(f"log: {len(seen.notices)} lines of level INFO, the last: {seen.notices[-1]}")
    return wrong


def reported(seen: Observation) -> float | None:
    """Minute at which an alert first said that something leaks."""
    return min((alert.first for alert in seen.alerts if alert.labels.get("kind") == "leak"), default=None)


def named(seen: Observation) -> float | None:
    """Minute at which a leak alert, or `/explain`, first named what leaks."""
    times = [alert.named for alert in seen.alerts if alert.labels.get("kind") == "leak"]
    return min((time for time in [*times, seen.explained] if time is not None), default=None)


def _starting(stranger: Stranger, seen: Observation) -> list[str]:
    if len(seen.served) < stranger.endpoints:
        return [f"port: {len(seen.served)} of {stranger.endpoints} processes served metrics"]
    unseen = sorted(set(seen.served) - set(seen.scraped))
    return [f"port: Prometheus did not scrape {address}" for address in unseen]


def _missed(leak: Leak, seen: Observation) -> list[str]:
    wrong = []
    for what, when in (("reported", reported(seen)), ("named", named(seen))):
        if when is None:
            wrong.append(f"leak not {what} in {seen.minutes:.0f} min")
        elif when > leak.minutes:
            wrong.append(f"leak {what} after {when:.1f} min, {leak.minutes:.0f} allowed")
    return wrong
