"""The rank of this process in a distributed run, from the environment variables of its launcher."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

# Rank and world size, the most specific launcher first: a process that torchrun starts inside a Slurm job
# has both. Sources: PyTorch's documentation of torchrun; srun(1); the Open MPI manual, mpirun(1); MPICH's
# Hydra process manager.
_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


class Rank(NamedTuple):
    """A process's number in its distributed run, from 0, and the number of processes."""

    rank: int
    world_size: int


def current_rank(environment: Mapping[str, str] = os.environ) -> Rank | None:
    """Return the rank of this process; None outside a run of several processes."""
    for rank_name, size_name in _LAUNCHERS:
        rank, size = _number(environment.get(rank_name)), _number(environment.get(size_name))
        if rank is not None and size is not None and size > 1 and rank < size:
            return Rank(rank, size)
    return None


def array_task(environment: Mapping[str, str] = os.environ) -> str:
    """Return `JOB_TASK` of a Slurm job array's task; empty elsewhere."""
    job, task = environment.get("SLURM_ARRAY_JOB_ID", ""), environment.get("SLURM_ARRAY_TASK_ID", "")
    return f"{job}_{task}" if _number(job) is not None and _number(task) is not None else ""


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None
