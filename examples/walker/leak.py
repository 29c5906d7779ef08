"""Switch leaks of the running Walker trainer: `python -m examples.walker.leak dynamic=60`, `... off`."""

import sys

from examples.common.leaks import main
from examples.walker.leaking import LEAKS

if __name__ == "__main__":
    sys.exit(main("walker", LEAKS, sys.argv[1:]))
