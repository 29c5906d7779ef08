"""Evolve traders: `python -m examples.erl_trading [--resume] [--leak environments=16] [--steps N]`.

With `--resume` it continues from the checkpoint of its last generation.
"""

import sys

from examples.common.command import run
from examples.erl_trading import LEAKS
from examples.erl_trading.trainer import ErlTrainer

if __name__ == "__main__":
    resume = "--resume" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--resume"]
    sys.exit(run("erl_trading", LEAKS, 100.0, lambda seed, rate: ErlTrainer(seed, rate, resume)))
