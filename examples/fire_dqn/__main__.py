"""Place fuel breaks: `python -m examples.fire_dqn [--leak experience=60] [--rate 25] [--steps N]`."""

import sys

from examples.common.command import run
from examples.fire_dqn import LEAKS
from examples.fire_dqn.trainer import FireTrainer

if __name__ == "__main__":
    sys.exit(run("fire_dqn", LEAKS, 25.0, lambda own: FireTrainer(own.seed, own.rate)))
