"""The ranks of a distributed run, taken together."""

from ..promql import max_by, min_by, select, sum_by
from ..verdicts import LEAK
from .trainers import RESIDENT, VERDICT

_RUN = "job, trainer, run, world_size"
_RANK = max_by(f"instance, rank, {_RUN}", select("trainer_info", 'rank!=""'))


def _of_ranks(of_trainer: str) -> str:
    return f"({of_trainer}) * on (job, instance) group_left (trainer, run, world_size) {_RANK}"


RANKS = f"count by ({_RUN}) ({_RANK})"
WORST_VERDICT = max_by(_RUN, _of_ranks(VERDICT))
LEAKING = sum_by(_RUN, _of_ranks(f"{VERDICT} == bool {LEAK}"))
MEMORY = sum_by(_RUN, _of_ranks(RESIDENT))
LARGEST = max_by(_RUN, _of_ranks(RESIDENT))
MEDIAN = f"quantile by ({_RUN}) (0.5, {_of_ranks(RESIDENT)})"
SMALLEST = min_by(_RUN, _of_ranks(RESIDENT))
