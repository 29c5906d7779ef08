"""Train the walkers: `python -m examples.walker [--auto-cleanup] [--leak dynamic=60] [--rate 30]`.

With `--auto-cleanup` the trainer itself has an emergency cleanup at 2 GB or 1,500 bodies, without any stack.
"""

import sys

from examples.common.command import run
from examples.walker import LEAKS
from examples.walker.trainer import Walker

if __name__ == "__main__":
    auto = "--auto-cleanup" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--auto-cleanup"]
    sys.exit(run("walker", LEAKS, 30.0, lambda seed, rate: Walker(seed=seed, rate=rate, auto_cleanup=auto)))
