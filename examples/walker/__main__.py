"""Train the walkers: `python -m examples.walker [--leak dynamic=60] [--rate 30] [--steps N]`."""

import sys

from examples.common.command import run
from examples.walker import LEAKS
from examples.walker.trainer import Walker

if __name__ == "__main__":
    sys.exit(run("walker", LEAKS, 30.0, lambda seed, rate: Walker(seed=seed, rate=rate)))
