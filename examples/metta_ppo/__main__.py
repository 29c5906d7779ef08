"""Train foragers: `python -m examples.metta_ppo [--leak stats=10] [--pace 50] [--steps N]`."""

import sys

from examples.common.command import run
from examples.metta_ppo.leaking import LEAKS
from examples.metta_ppo.trainer import MettaTrainer

if __name__ == "__main__":
    sys.exit(run("metta_ppo", LEAKS, 50.0, lambda seed, pace: MettaTrainer(seed, pace)))
