"""Decides what to do about an alert, and judges whether it helped. Pure functions that give their reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from heapwatch.text.numbers import duration, size, wait
from heapwatch_receiver.settings import Settings

Readings = dict[str, float]  # levels by resource, memory in bytes
Verdict = Literal["helped", "no_effect", "unverified"]
ActionName = Literal["regular", "emergency", "notify", "restart"]
CLEANUPS: tuple[ActionName, ...] = ("regular", "emergency")
REASONS = (
    "resolved", "not_cleanup", "no_trainer", "ended", "stale", "duplicate", "cooldown", "exhausted", "budget",
    "not_firing", "no_target", "refused",
)  # fmt: skip

STALE_SECONDS = 600.0  # an alert that has waited longer says little of now; a firing one is repeated
HELPED_FRACTION = 0.05  # levels of a busy trainer vary by a few percent without any cleanup
# The labels that every rule sets, by which an alert is found again in Prometheus.
_CONTRACT_LABELS = ("alertname", "job", "instance", "severity", "level", "kind", "resource", "component")


class TrainerKey(NamedTuple):
    """A trainer as Prometheus labels it."""

    job: str
    instance: str


@dataclass(frozen=True)
class Alert:
    """A received alert; times are seconds since the epoch, `starts_at` is text."""

    id: int
    received_at: float
    fingerprint: str
    starts_at: str
    ends_at: float | None
    status: str
    labels: Mapping[str, str]

    @property
    def episode(self) -> tuple[str, str]:
        """What deliveries of the same alert have in common."""
        return self.fingerprint, self.starts_at

    @property
    def trainer(self) -> TrainerKey:
        """The trainer that it is about."""
        return TrainerKey(self.labels.get("job", ""), self.labels.get("instance", ""))

    @property
    def is_emergency(self) -> bool:
        """Whether it asks for the emergency cleanup."""
        return "emergency" in (self.labels.get("severity"), self.labels.get("level"))

    @property
    def concerns(self) -> dict[str, str]:
        """The labels that say which resource it is about."""
        return {name: self.labels[name] for name in ("resource", "component") if name in self.labels}


@dataclass(frozen=True)
class Past:
    """An earlier action on the same trainer. `refused`: it accepts no cleanups."""

    action: ActionName
    episode: tuple[str, str]
    began: float
    finished: float
    refused: bool = False


@dataclass(frozen=True)
class AlertHistory:
    """What the database has that matters for an alert; times are seconds since the epoch.

    `first_seen`: when this episode was first received. `resolved_since`: whether its end was received later.
    `past`: finished actions on its trainer, newest first.
    """

    now: float
    first_seen: float
    resolved_since: bool
    past: Sequence[Past]
    actions_last_hour: int


@dataclass(frozen=True)
class Facts:
    """A trainer in Prometheus: the labels of its firing alerts, and its scrape URL if it is unambiguous."""

    firing: Sequence[Mapping[str, str]]
    target: str | None

    def fires(self, labels: Mapping[str, str]) -> bool:
        """Whether an alert with the same contract labels fires; Alertmanager may add other labels."""
        return any(all(one.get(name) == labels.get(name) for name in _CONTRACT_LABELS) for one in self.firing)


@dataclass(frozen=True)
class Act:
    """Perform this action; a cleanup at this URL."""

    action: ActionName
    detail: str
    url: str = ""

    @property
    def decision(self) -> str:
        """The decision as the audit names it."""
        return "act" if self.action in CLEANUPS else "escalate"

    @property
    def reason(self) -> str:
        """The reason as the audit names it."""
        return self.action


@dataclass(frozen=True)
class Refuse:
    """Do nothing, for this reason (one of REASONS)."""

    reason: str
    detail: str

    @property
    def decision(self) -> str:
        """The decision as the audit names it."""
        return {"resolved": "close", "exhausted": "give_up"}.get(self.reason, "suppress")


def on_sight(alert: Alert) -> Refuse | None:
    """The decision on an alert without its history; None if it depends on the history."""
    if alert.status == "resolved":
        return Refuse("resolved", "the alert ended")
    if alert.labels.get("action") != "cleanup":
        return Refuse("not_cleanup", 'only alerts labelled action="cleanup" are acted on')
    if not all(alert.trainer):
        return Refuse("no_trainer", "the alert names no trainer: labels job and instance are needed")
    return None


def decide(
    alert: Alert, history: AlertHistory, facts: Facts | None, settings: Settings
) -> Act | Refuse | None:
    """The decision on an alert whose turn has come; None while it needs facts and Prometheus is away.

    The steps are a regular cleanup, an emergency cleanup, then the escalation. None is repeated.
    The next is due if the alert still arrives after the cooldown, even if the last step freed memory.
    """
    if history.resolved_since:
        return Refuse("resolved", "the alert ended while it waited")
    if alert.ends_at is not None and alert.ends_at <= history.now:
        return Refuse("ended", "the alert's end has passed")
    step = _next_step(alert, history, settings)
    if isinstance(step, Refuse):
        return step
    last = next((past for past in history.past if past.action == step.action), None)
    if last and (refusal := _cooling(last, alert, history, settings)):
        return refusal
    age = history.now - alert.received_at
    if age > STALE_SECONDS:
        return Refuse("stale", f"received {duration(age)} ago, {duration(STALE_SECONDS)} allowed")
    if step.action != "notify" and history.actions_last_hour >= settings.actions_per_hour:
        return Refuse(
            "budget",
            f"{history.actions_last_hour} actions in the last hour, {settings.actions_per_hour} allowed",
        )
    if facts is None:
        return None
    if not facts.fires(alert.labels):
        return Refuse("not_firing", "Prometheus says the alert does not fire (any more)")
    if facts.target is None and step.action in CLEANUPS:
        return Refuse("no_target", "Prometheus scrapes no such trainer, or several of that name")
    return replace(step, url=facts.target or "")


def _next_step(alert: Alert, history: AlertHistory, settings: Settings) -> Act | Refuse:
    ladder: list[ActionName] = [*CLEANUPS, settings.escalation]
    tried = [past for past in history.past if past.began >= history.first_seen and past.action in ladder]
    if any(past.refused for past in tried):
        return Refuse("refused", "the trainer takes no cleanups: the first request on /actions says why")
    due = 1 + max((ladder.index(past.action) for past in tried), default=-1)
    first = 1 if alert.is_emergency else 0
    if due <= first:
        return Act(ladder[first], "first for this alert")
    if refusal := _cooling(tried[0], alert, history, settings):
        return refusal
    if due == len(ladder):
        return Refuse(
            "exhausted", f"still firing after {', '.join(past.action for past in reversed(tried))}: giving up"
        )
    return Act(ladder[due], f"still firing after {ladder[due - 1]}")


def _cooling(past: Past, alert: Alert, history: AlertHistory, settings: Settings) -> Refuse | None:
    seconds_left = past.finished + settings.cooldown - history.now
    if seconds_left <= 0:
        return None
    same = past.episode == alert.episode
    whose = "this alert" if same else "another alert"
    return Refuse(
        "duplicate" if same else "cooldown",
        f"{past.action} was done for {whose} {duration(history.now - past.finished)} ago,"
        f" {wait(seconds_left)} of its cooldown are left",
    )


def judge(
    labels: Mapping[str, str], before: Readings, after: Readings, *, still_firing: bool | None
) -> tuple[Verdict, str]:
    """Judge a cleanup by the levels that the trainer measured; returns the verdict and what it is based on.

    It helped if the alert ended, or if a level that the alert is about fell by HELPED_FRACTION or more.
    `still_firing` is None if Prometheus did not answer; without levels, the effect is then unverified.
    """
    keys = [key for key in _keys(labels, before) if key in after]
    changes = [f"{key} {_amount(key, before)} to {_amount(key, after)}" for key in keys]
    detail = ", ".join(changes) or "no figures of what the alert is about"
    if still_firing is False:
        return "helped", f"the alert ended; {detail}"
    if any(before[key] - after[key] >= HELPED_FRACTION * before[key] > 0 for key in keys):
        return "helped", detail
    if not keys and still_firing is None:
        return "unverified", f"{detail}, and Prometheus could not be asked"
    return "no_effect", detail


def _amount(key: str, readings: Readings) -> str:
    return size(readings[key]) if key == "memory" else f"{readings[key]:g}"


def _keys(labels: Mapping[str, str], before: Readings) -> list[str]:
    """The readings that an alert is about; memory for resources without a reading."""
    resource, component = labels.get("resource", "memory"), labels.get("component", "")
    if resource == "bodies":
        return [key for key in before if key == "bodies"]
    if resource in ("entities", "events", "buffer"):
        exact = f"{resource}/{component}"
        return [exact] if exact in before else [key for key in before if key.startswith(f"{resource}/")]
    return [key for key in before if key == "memory"]
