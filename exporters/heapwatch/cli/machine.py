"""`heapwatch explain` without a name: which processes of this machine grow, and what grows in one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, NamedTuple

from heapwatch.cli.followed import Ended
from heapwatch.cli.visits import Visits
from heapwatch.entering.entered_process import CannotEnter
from heapwatch.explain.findings import Explanation
from heapwatch.judge.verdict import SERIOUS, WORDS
from heapwatch.machine.groups import Groups
from heapwatch.machine.levels import GroupGrowth
from heapwatch.machine.survey import Survey, survey
from heapwatch.text.numbers import counted
from heapwatch.text.terminal import say

_MOST_GROUPS, _MOST_TRIED = 3, 3
_LEAST_SECONDS = 60.0  # of a visit: a verdict takes less


class MachineExplanation(NamedTuple):
    """What grows on a machine: its groups, and the explanation of the process that was entered.

    `group` and `pid` are None where none was entered. `tried` are the groups of which it was attempted.
    """

    survey: Survey
    explanation: Explanation
    group: GroupGrowth | None = None
    pid: int | None = None
    tried: frozenset[str] = frozenset()
    has_died: bool = False

    def about(self) -> tuple[str, ...]:
        """Lines about the process that was entered, and about growing groups that were not looked into."""
        if self.group is None:
            return ()
        growing = [group for group in self.survey.growing if group.members]
        names = [group.name for group in growing if group.name not in self.tried]
        others = (f"Not entered, though they grow: {', '.join(names)}.",) if names else ()
        among, alike = len(self.group.members), len(self.group.growing)
        which = f", one of {alike} that grow among {among} {self.group.name}"
        if among == 1:
            which = f" ({self.group.name})"
        elif not alike:
            which = f", one of {among} {self.group.name}"
        return (*others, f"Process {self.pid}{which}:")

    def as_json(self) -> dict[str, Any]:
        """The explanation as `GET /explain` has it, with the groups and the process that was entered."""
        return {
            **self.explanation.as_json(),
            "entered": None if self.group is None else {"pid": self.pid, "group": self.group.name},
            "tried": sorted(self.tried),
            "groups": [
                {
                    "group": group.name,
                    "processes": len(group.members),
                    "growing": len(group.growing),
                    "private_bytes": group.private,
                    "shared_bytes": group.shared,
                    "bytes_per_minute": round(group.per_minute + group.shared_per_minute),
                    "matters": group.matters,
                }
                for group in self.survey.groups
            ],
        }


def explain_machine(
    seconds: float,
    *,
    everyone: bool = False,
    among: Callable[[], Collection[int] | None] = lambda: None,
    show: Callable[[Survey], None] = lambda explanation: None,
) -> MachineExplanation:
    """Look at processes, enter one of the group that grows most, and explain it.

    The next group is entered if the verdict on the first is not serious.

    Args:
        seconds: how long processes may be entered, together.
        everyone: look at processes of other users, too.
        among: returns the ids of the processes to look at; None for all.
        show: called with the groups before a process is entered.

    """
    looked_at = survey(Groups(everyone=everyone), among)
    show(looked_at)
    growing, tried = looked_at.to_enter[:_MOST_GROUPS], set[str]()
    best = MachineExplanation(looked_at, _nothing_grows(looked_at))
    until, visits = time.monotonic() + seconds, Visits()
    for rank, group in enumerate(growing):
        left = (until - time.monotonic()) / (len(growing) - rank)
        if rank and left < _LEAST_SECONDS / 2:
            break
        tried.add(group.name)
        entered = _entered(visits, group, max(_LEAST_SECONDS, left))
        if entered is None:
            continue
        pid, explanation = entered
        if best.group is None or WORDS.index(explanation.verdict) > WORDS.index(best.explanation.verdict):
            best = MachineExplanation(looked_at, for_group(explanation, group), group, pid)
        if explanation.verdict in SERIOUS or visits.is_interrupted:
            break
    return best._replace(tried=frozenset(tried), has_died=visits.has_died)


def for_group(explanation: Explanation, group: GroupGrowth) -> Explanation:
    """The explanation of one process, whose findings say how many of its group grow like it."""
    if len(group.members) == 1:
        return explanation
    alike = f"{len(group.growing or group.members)} of {len(group.members)} {group.name}"
    findings = tuple(
        replace(finding, type=f"{finding.type} in {alike}") if finding.path else finding
        for finding in explanation.findings
    )
    return replace(explanation, findings=findings)


def _entered(visits: Visits, group: GroupGrowth, seconds: float) -> tuple[int, Explanation] | None:
    """The first process of a group that can be entered, and its explanation; None if none can be."""
    members = group.growing or group.members
    for member in [member for member in members if member.is_python][:_MOST_TRIED]:
        try:
            return member.pid, visits.explain(member.pid, seconds)
        except (CannotEnter, Ended) as error:
            say(f"heapwatch: {error}", error=True)
    if not any(member.is_python for member in members):
        say(f"heapwatch: {group.name} does not run Python: it cannot be entered", error=True)
    return None


def _nothing_grows(looked_at: Survey) -> Explanation:
    if looked_at.growing:
        detail = "No process that grows could be entered."
    else:
        read = counted(looked_at.processes, "process", "processes")
        detail = f"Nothing grows by an amount that matters in {read}."
    return Explanation("too early", looked_at.seconds, 0.0, 0.0, detail=detail)
