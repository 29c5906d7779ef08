"""The checkpoint of a generation, from which `--resume` goes on."""

from pathlib import Path
from typing import NamedTuple

import torch

from examples.common.leaks import leak_file
from examples.erl_trading.agent import DDPGAgent, Weights
from heapwatch.runtime.own_files import make_private


class Checkpoint(NamedTuple):
    """What is kept of a generation: the agents that survived it, the best first. The replay buffer is not."""

    generation: int
    agents: list[Weights]


def save(generation: int, agents: list[DDPGAgent]) -> None:
    """Replace the checkpoint."""
    file = _file()
    make_private(file.parent)
    partial = file.with_suffix(".tmp")
    torch.save(Checkpoint(generation, [agent.weights() for agent in agents])._asdict(), partial)
    partial.replace(file)


def load() -> Checkpoint:
    """The checkpoint. Raises SystemExit if there is none."""
    if not _file().exists():
        raise SystemExit(f"--resume: {_file()} does not exist, which the first generation writes")
    return Checkpoint(**torch.load(_file(), weights_only=True))


def _file() -> Path:
    return leak_file("erl_trading").with_name("erl_trading.pt")
