"""Decides what to do about an alert, and judges whether it helped. Pure functions that give their reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from heapwatch_receiver.settings import Settings

Readings = dict[str, float]  # levels by resource, memory in bytes
Verdict = Literal["helped", "no_effect", "unverified"]
Action = Literal["regular", "emergency", "notify", "restart"]
CLEANUPS: tuple[Action, ...] = ("regular", "emergency")
_CONTRACT_LABELS = ("alertname", "job", "instance", "severity", "level", "kind", "resource", "component")
REASONS = (
    "resolved", "not_cleanup", "no_trainer", "ended", "stale", "duplicate", "cooldown", "exhausted", "budget",
    "recovering", "not_firing", "no_target", "refused",
)  # fmt: skip


@dataclass(frozen=True)
class Alert:
    """A received alert.

    `starts_at` and `ends_at` are microseconds since the epoch, `steady` the steady seconds of its receipt.
    """

    id: int
    fingerprint: str
    starts_at: int
    ends_at: int | None
    status: str
    labels: Mapping[str, str]
    steady: float


@dataclass(frozen=True)
class Past:
    """An earlier action on the same trainer; times are steady seconds. `refused`: it accepts no cleanups."""

    action: str
    fingerprint: str
    starts_at: int
    began: float
    finished: float
    refused: bool = False


@dataclass(frozen=True)
class AlertHistory:
    """The rows of the ledger that matter for an alert; times are steady seconds.

    `first_seen`: when this episode (fingerprint and start) was first received. `past`: actions on its
    trainer, newest first, without cancelled ones. `resolved_since`: whether its end was received later.
    `recovered`: when a corrupt database was replaced, which lost the earlier actions.
    """

    now: float
    wall: float
    first_seen: float
    resolved_since: bool
    past: Sequence[Past]
    actions_last_hour: int
    recovered: float | None


@dataclass(frozen=True)
class Facts:
    """The state of a trainer in Prometheus: the labels of its firing alerts, and its scrape URL.

    Prometheus was queried at the steady second `asked` or later. `target` is None unless it is unambiguous.
    `warm` is false while Prometheus has started so recently that it may not have evaluated its rules yet.
    """

    asked: float
    firing: Sequence[Mapping[str, str]]
    target: str | None
    warm: bool = True

    def fires(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with the same contract labels fires; Alertmanager may add other labels."""
        return any(all(one.get(name) == labels.get(name) for name in _CONTRACT_LABELS) for one in self.firing)


@dataclass(frozen=True)
class Act:
    """Perform this action."""

    action: Action
    detail: str


@dataclass(frozen=True)
class Refuse:
    """Do nothing, for this reason (one of REASONS); `give_up` if every step was tried."""

    reason: str
    detail: str

    @property
    def decision(self) -> str:
        """The decision as the audit names it."""
        return {"resolved": "close", "exhausted": "give_up"}.get(self.reason, "suppress")


@dataclass(frozen=True)
class Wait:
    """Prometheus cannot answer yet: query it again later."""


@dataclass(frozen=True)
class Ask:
    """The ledger allows an action: query Prometheus for the present state, then decide again."""


def is_emergency(labels: Mapping[str, str]) -> bool:
    """Whether the alert requests the emergency cleanup."""
    return "emergency" in (labels.get("severity"), labels.get("level"))


def on_sight(alert: Alert) -> Refuse | None:
    """The decision on an alert without its history; None if it depends on the history."""
    if alert.status == "resolved":
        return Refuse("resolved", "the alert ended")
    if alert.labels.get("action") != "cleanup":
        return Refuse("not_cleanup", 'only alerts labelled action="cleanup" are acted on')
    if not alert.labels.get("job") or not alert.labels.get("instance"):
        return Refuse("no_trainer", "the alert names no trainer: labels job and instance are needed")
    return None


def decide(
    alert: Alert, history: AlertHistory, facts: Facts | None, settings: Settings
) -> Act | Refuse | Ask | Wait:
    """The decision on an alert whose turn has come.

    The steps are a regular cleanup, an emergency cleanup, then the configured escalation. The next step is
    due if the alert still arrives after the cooldown of an action since the start of this episode, also if
    that freed memory; no step is repeated.
    """
    if refusal := on_sight(alert) or _outdated(alert, history) or _recovering(history, settings):
        return refusal
    choice = _next_step(alert, history, settings)
    if isinstance(choice, Refuse):
        return choice
    last = next((past for past in history.past if past.action == choice.action), None)
    if last and (refusal := _cooling(last, alert, history, settings)):
        return refusal
    if choice.action != "notify" and history.actions_last_hour >= settings.actions_per_hour:
        return Refuse(
            "budget",
            f"{history.actions_last_hour} actions in the last hour, {settings.actions_per_hour} allowed",
        )
    if facts is None or facts.asked < alert.steady:
        return Ask()
    if not facts.fires(alert.labels):
        refusal = Refuse("not_firing", "Prometheus says the alert does not fire (any more)")
    elif facts.target is None and choice.action in CLEANUPS:
        refusal = Refuse("no_target", "Prometheus scrapes no such trainer, or several of that name")
    else:
        return choice
    return refusal if facts.warm else Wait()


def _outdated(alert: Alert, history: AlertHistory) -> Refuse | None:
    if history.resolved_since:
        return Refuse("resolved", "the alert ended while it waited")
    if alert.ends_at is not None and alert.ends_at <= history.wall * 1e6:
        return Refuse("ended", "the alert's end has passed")
    return None


def _recovering(history: AlertHistory, settings: Settings) -> Refuse | None:
    if history.recovered is None:
        return None
    hold = max(settings.regular_cooldown, settings.emergency_cooldown)
    left = history.recovered + hold - history.now
    if left <= 0:
        return None
    return Refuse("recovering", f"the past was lost with a corrupt database: no action for {left:.0f} s more")


def _next_step(alert: Alert, history: AlertHistory, settings: Settings) -> Act | Refuse:
    ladder: list[Action] = ["regular", "emergency"]
    if settings.escalation != "nothing":
        ladder.append(settings.escalation)
    steps: dict[str, int] = {action: step for step, action in enumerate(ladder)}
    tried = [past for past in history.past if past.began >= history.first_seen and past.action in steps]
    if any(past.refused for past in tried):
        return Refuse("refused", "the trainer takes no cleanups: the row of the first request says why")
    highest = max((steps[past.action] for past in tried), default=-1)
    start = 1 if is_emergency(alert.labels) else 0
    if highest < start:
        return _fresh(alert, history, Act(ladder[start], "first for this alert"), settings)
    if refusal := _cooling(tried[0], alert, history, settings):
        return refusal
    if highest + 1 == len(ladder):
        return Refuse(
            "exhausted", f"still firing after {', '.join(past.action for past in reversed(tried))}: giving up"
        )
    return _fresh(alert, history, Act(ladder[highest + 1], f"still firing after {ladder[highest]}"), settings)


def _fresh(alert: Alert, history: AlertHistory, act: Act, settings: Settings) -> Act | Refuse:
    age = history.now - alert.steady
    if age > settings.stale_after:
        return Refuse("stale", f"received {age:.0f} s ago, {settings.stale_after:.0f} s allowed")
    return act


def _cooling(past: Past, alert: Alert, history: AlertHistory, settings: Settings) -> Refuse | None:
    left = past.finished + settings.cooldown(past.action) - history.now
    if left <= 0:
        return None
    same = (past.fingerprint, past.starts_at) == (alert.fingerprint, alert.starts_at)
    whose = "this alert" if same else "another alert"
    return Refuse(
        "duplicate" if same else "cooldown",
        f"{past.action} was done for {whose} {history.now - past.finished:.0f} s ago,"
        f" {left:.0f} s of its cooldown are left",
    )


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
