"""Train the walkers: `python -m examples.walker [--auto-cleanup] [--leak dynamic=60] [--rate 30]`."""

import sys
from argparse import Namespace

from examples.common.command import run
from examples.walker import LEAKS
from examples.walker.trainer import Walker


def make(own: Namespace) -> Walker:
    """The trainer that the command line describes."""
    return Walker(seed=own.seed, rate=own.rate, auto_cleanup=own.auto_cleanup)


if __name__ == "__main__":
    flags = {"--auto-cleanup": "have an emergency cleanup at 2 GB or 1,500 bodies, without any stack"}
    sys.exit(run("walker", LEAKS, 30.0, make, flags))
