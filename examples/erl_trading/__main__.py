"""Evolve traders: `python -m examples.erl_trading [--resume] [--leak environments=16] [--steps N]`."""

import sys

from examples.common.command import run
from examples.erl_trading import LEAKS
from examples.erl_trading.trainer import ErlTrainer

if __name__ == "__main__":
    flags = {"--resume": "continue from the checkpoint of its last generation"}
    sys.exit(run("erl_trading", LEAKS, 100.0, lambda own: ErlTrainer(own.seed, own.rate, own.resume), flags))
