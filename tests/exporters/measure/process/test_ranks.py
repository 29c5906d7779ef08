from __future__ import annotations

import pytest

from heapwatch.measure.process.ranks import Rank, array_task, current_rank


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"RANK": "3", "WORLD_SIZE": "64"}, Rank(3, 64)),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, Rank(0, 2)),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, Rank(1, 4)),
        ({"PMI_RANK": "7", "PMI_SIZE": "8"}, Rank(7, 8)),
        # torchrun inside a Slurm job of one task a node
        ({"RANK": "9", "WORLD_SIZE": "16", "SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Rank(9, 16)),
        # a job of one process has no ranks worth a label
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),
        # a program's own variable of that name
        ({"RANK": "captain"}, None),
        ({"RANK": "3"}, None),
        ({"RANK": "64", "WORLD_SIZE": "64"}, None),
        ({"RANK": "-1", "WORLD_SIZE": "64"}, None),
        ({"RANK": "٣", "WORLD_SIZE": "64"}, None),
        ({}, None),
    ],
)
def test_the_rank_is_what_the_launcher_says(environment: dict[str, str], expected: Rank | None) -> None:
    assert current_rank(environment) == expected


def test_a_task_of_a_slurm_array_is_a_run_of_its_own() -> None:
    assert array_task({"SLURM_ARRAY_JOB_ID": "812", "SLURM_ARRAY_TASK_ID": "17"}) == "812_17"
    assert array_task({"SLURM_ARRAY_TASK_ID": "17"}) == ""
    assert array_task({}) == ""
