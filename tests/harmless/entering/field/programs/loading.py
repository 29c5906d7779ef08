"""A trainer that takes a batch from its DataLoader every few seconds; the workers wait meanwhile."""

import os

import torch
from torch.utils.data import DataLoader, Dataset

from tests.harmless.entering.field.programs.waiting import numbered, wait

SIZE, BATCH = 100_000, 8


class Numbers(Dataset):
    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((100,), float(index))


def main() -> None:
    loader = DataLoader(Numbers(), batch_size=BATCH, num_workers=2, persistent_workers=True)
    batches = iter(loader)
    rounds = 0

    def work() -> None:
        nonlocal rounds
        expected = torch.arange(rounds * BATCH, (rounds + 1) * BATCH)
        assert torch.equal(next(batches).mean(dim=1), expected.float())
        rounds += 1

    workers = list(batches._workers)
    wait({"trainer": os.getpid(), **numbered("worker", [one.pid for one in workers])}, work)
    batches._shutdown_workers()
    assert [one.exitcode for one in workers] == [0, 0]


if __name__ == "__main__":
    main()
