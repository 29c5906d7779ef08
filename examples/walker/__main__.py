"""Train the walkers: `python -m examples.walker [--auto-cleanup] [--leak dynamic=60] [--rate 30]`."""

import sys
from argparse import Namespace

from examples.common.command import run
from examples.walker import LEAKS
from examples.walker.trainer import Walker


def make(own: Namespace) -> Walker:
    """The trainer that the command line describes."""
    return Walker(
        seed=own.seed, rate=own.rate, auto_cleanup=own.auto_cleanup, local_cleanup=own.local_cleanup
    )


if __name__ == "__main__":
    flags = {
        "--auto-cleanup": "have an emergency cleanup above 2 GB or 1,500 bodies, without any stack",
        "--local-cleanup": "accept POST /force_cleanup without a token; only where it listens on loopback",
    }
    sys.exit(run("walker", LEAKS, 30.0, make, flags))
