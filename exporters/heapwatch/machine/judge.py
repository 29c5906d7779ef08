"""Judges the groups of processes of a machine for days, and enters a process of a group that grows."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from heapwatch.explain.findings import Explanation, Finding, ranked
from heapwatch.judge.component import Component
from heapwatch.judge.measured import WINDOWS
from heapwatch.judge.memory import WARM_UP_SECONDS, TimeLeft
from heapwatch.judge.trainer import Leak, Sample, TrainerJudge
from heapwatch.judge.verdict import Word
from heapwatch.machine.groups import Groups, Member
from heapwatch.machine.levels import GroupGrowth, MachineLevels
from heapwatch.machine.visits import WorkerVisits
from heapwatch.machine.workers import with_names
from heapwatch.measure.process.kernel_kills import KernelKills
from heapwatch.measure.process.memory import free_memory
from heapwatch.text.numbers import counted, wait

log = logging.getLogger("heapwatch")

_READ_SECONDS = 10.0
_TIME_SHARE = 0.005  # of the time for reading; with thousands of processes readings are rarer
_RECENT_SECONDS = 900.0
_UNSURE = 1.25  # by which the growth may be faster or slower than it was
_VISITS_SECONDS = 5.0
_MOST_GROUPS = 100  # with series of their own
OTHERS = "all others"


class MachineJudge:
    """Reads, judges and enters in steps that do not wait: call `step` from one thread.

    Args:
        groups: names the groups.
        clock: monotonic seconds.
        levels: reads the memory.

    Attributes:
        latest: the newest explanation.
        judged_at: when that was, in seconds since the epoch; None before the first.
        spent_on: CPU seconds so far, by activity.
        growing: every group as it was last read, the one that grows most first.
        kills: number of processes that the kernel ended for lack of memory, by group.

    """

    def __init__(
        self,
        groups: Groups,
        *,
        clock: Callable[[], float] = time.monotonic,
        levels: MachineLevels | None = None,
    ) -> None:
        self.latest = Explanation("too early", 0.0, 0.0, 0.0, detail="No process was read yet.")
        self.judged_at: float | None = None
        self.spent_on = {"read": 0.0, "judge": 0.0}
        self.growing: list[GroupGrowth] = []
        self.kills: Counter[str] = Counter()
        self._kernel_kills = KernelKills()
        self._members: dict[int, Member] = {}  # at the last reading, by process id
        self._groups = groups
        self._reported: list[GroupGrowth] = []
        self._levels = levels or MachineLevels(startup_seconds=WARM_UP_SECONDS)
        self._judge = TrainerJudge()
        self._clock = clock
        self._began = clock()
        self._read_due = self._visits_due = self._began
        self._visits = WorkerVisits(clock, self._sizes)

    def now(self) -> Explanation:
        """The newest explanation."""
        return self.latest

    def step(self) -> float:
        """Do what is due; returns the seconds until the next step."""
        now = self._clock()
        if now >= self._read_due:
            began = time.thread_time()
            self._read(now)
            cost = time.thread_time() - began
            self.spent_on["read"] += cost
            self._read_due = now + max(_READ_SECONDS, cost / _TIME_SHARE)
        if self._judge.is_due(now):
            began = time.thread_time()
            self._evaluate(now)
            self.spent_on["judge"] += time.thread_time() - began
        if now >= self._visits_due:
            self._visits_due = now + _VISITS_SECONDS
            self._visits.step(bool(self.latest.findings))
        return max(0.1, min(self._read_due, self._visits_due) - self._clock())

    def stop(self) -> None:
        """End a visit."""
        self._visits.stop()

    def exposed(self) -> list[GroupGrowth]:
        """The groups that have series: the largest, and all others as one."""
        groups = sorted(self.growing, key=lambda group: -group.held)
        largest, rest = groups[:_MOST_GROUPS], groups[_MOST_GROUPS:]
        if not rest:
            return largest
        others = GroupGrowth(
            OTHERS,
            tuple(member for group in rest for member in group.members),
            sum(group.private for group in rest),
            sum(group.shared for group in rest),
            sum(group.per_minute for group in rest),
        )
        return [*largest, others]

    def _read(self, now: float) -> None:
        members = self._groups.members()
        self._levels.read(members, now)
        previous, self._members = self._members, {member.pid: member for member in members}
        for pid in previous.keys() - self._members.keys():
            if self._kernel_kills.has_killed(pid):
                self.kills[previous[pid].group] += 1
        self._kernel_kills.update(self._members)
        self.growing = self._levels.groups(now - _RECENT_SECONDS)

    def _evaluate(self, now: float) -> None:
        levels = {Component("memory", group.name): float(group.held) for group in self.growing}
        leaks = self._judge.observe(now, Sample(levels=levels, age_seconds=now - self._began))
        explanation = self._explanation(now - self._began, leaks)
        if explanation.verdict != self.latest.verdict:
            log.info("the machine: %s", explanation.verdict)
        self.latest, self.judged_at = explanation, time.time()

    def _explanation(self, seconds: float, leaks: tuple[Leak, ...]) -> Explanation:
        leaking = {leak.component.name: leak.per_minute for leak in leaks}
        groups = [group for group in self.growing if group.name in leaking or (group.lasts and group.matters)]
        self._reported = groups
        rates = {group.name: leaking.get(group.name, group.held_per_minute) for group in groups}
        total = sum(rates.values())
        findings = [
            finding
            for group in groups
            for finding in self._findings(group, rates[group.name], total, is_leak=group.name in leaking)
        ]
        verdict, detail = self._verdict(seconds, leaks, groups)
        return Explanation(
            verdict,
            seconds,
            total,
            1.0 if total else 0.0,
            ranked(findings),
            detail,
            _time_left(sum(leaking.values())),
            leaks=leaks,
        )

    def _findings(
        self, group: GroupGrowth, rate: float, total: float, *, is_leak: bool
    ) -> tuple[Finding, ...]:
        """The growth of a group, with the names from the visit of one of its processes."""
        whole = Finding(
            "worker",
            None,
            f"memory of {group.name}",
            len(group.members) or None,
            group.held,
            bytes_per_minute=rate,
            share=rate / total if total else 0.0,
            is_leak=is_leak,
        )
        visited = self._visits.inside(group.name)
        if visited is None:
            return (whole,)
        named = with_names(Explanation("growing", 0.0, rate, 1.0, (whole,)), *visited, group.name)
        return tuple(replace(finding, is_leak=is_leak and finding.is_leak) for finding in named.findings)

    def _verdict(
        self, seconds: float, leaks: tuple[Leak, ...], groups: list[GroupGrowth]
    ) -> tuple[Word, str]:
        if leaks:
            return "leak", ""
        known_in = 60 * 1.5 * min(WINDOWS) - seconds
        if groups:
            lasts = f" Whether it lasts is known in {wait(known_in)}." if known_in > 0 else ""
            return ("too early" if known_in > 0 else "growing"), f"{groups[0].name} grows.{lasts}"
        processes = counted(sum(len(group.members) for group in self.growing), "process", "processes")
        watched = f"{processes} in {counted(sum(1 for group in self.growing if group.members), 'group')}"
        if known_in > 0:
            return "too early", f"It watches {watched}; a verdict takes {wait(known_in)} more."
        return "healthy", f"It watches {watched}."

    def _sizes(self) -> dict[Member, int]:
        """Private memory of the processes that may be entered: those of groups that grow."""
        members = (member for group in self._reported for member in group.members if member.is_python)
        return {member: size for member in members if (size := self._levels.private(member)) is not None}


def _time_left(per_minute: float) -> TimeLeft | None:
    """The time until the machine's memory is used up, by growth in bytes a minute."""
    if per_minute <= 0:
        return None
    seconds = 60 * free_memory() / per_minute
    return TimeLeft(seconds / _UNSURE, seconds * _UNSURE)
