"""Two ranks of torchrun: one waits for the visits to end, the other one in a collective for the first."""

import os

import torch
from torch import distributed

from tests.harmless.entering.field.programs.waiting import wait


def main() -> None:
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    pids = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
    distributed.all_gather(pids, torch.tensor([os.getpid()]))

    def work(goes_on: bool = True) -> bool:
        numbers = torch.tensor([rank + 1, int(goes_on)])
        distributed.barrier()
        distributed.all_reduce(numbers)
        assert numbers[0] == 3
        return int(numbers[1]) == 2

    if rank == 0:
        wait({"agent": os.getppid(), "rank 0": int(pids[0]), "rank 1": int(pids[1])}, work)
        work(goes_on=False)
    else:
        while work():
            pass
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
