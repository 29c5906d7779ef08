"""Whether a cleanup helped, from the values before and after it: the trainer's own and Prometheus's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from heapwatch_receiver.prometheus import Readings

Verdict = Literal["helped", "no_effect", "unverified"]


@dataclass(frozen=True)
class Effect:
    """The verdict and the values that it is based on."""

    verdict: Verdict
    detail: str


def judge(
    labels: Mapping[str, str],
    sources: Mapping[str, tuple[Readings, Readings]],
    *,
    still_firing: bool | None,
    helped_fraction: float,
) -> Effect:
    """Judge a cleanup.

    It helped if the alert ended, or if a value that the alert is about fell by `helped_fraction` or more in
    any source. `sources` has the values before and after by source. `still_firing` is None if Prometheus did
    not answer; without values, the effect is then unverified.
    """
    changes: list[str] = []
    fell = False
    for source, (before, after) in sources.items():
        for key in _keys(labels, before):
            if key in after:
                changes.append(f"{key} {_amount(key, before)} to {_amount(key, after)} ({source})")
                fell = fell or before[key] - after[key] >= helped_fraction * before[key] > 0
    detail = ", ".join(changes) or "no figures of what the alert is about"
    if still_firing is False:
        return Effect("helped", f"the alert ended; {detail}")
    if fell:
        return Effect("helped", detail)
    if not changes and still_firing is None:
        return Effect("unverified", f"{detail}, and Prometheus could not be asked")
    return Effect("no_effect", detail)


def _amount(key: str, readings: Readings) -> str:
    return f"{readings[key] / 1e6:.1f} MB" if key == "memory" else f"{readings[key]:g}"


def _keys(labels: Mapping[str, str], before: Readings) -> list[str]:
    """The readings that an alert is about; memory for resources without a reading."""
    resource, component = labels.get("resource", "memory"), labels.get("component", "")
    if resource == "bodies":
        return [key for key in before if key == "bodies"]
    if resource in ("entities", "events", "buffer"):
        exact = f"{resource}/{component}"
        return [exact] if exact in before else [key for key in before if key.startswith(f"{resource}/")]
    return [key for key in before if key == "memory"]
