"""Evolve traders: `python -m examples.erl_trading [--leak environments=16] [--rate 100] [--steps N]`."""

import sys

from examples.common.command import run
from examples.erl_trading import LEAKS
from examples.erl_trading.trainer import ErlTrainer

if __name__ == "__main__":
    sys.exit(run("erl_trading", LEAKS, 100.0, lambda seed, rate: ErlTrainer(seed, rate)))
