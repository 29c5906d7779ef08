"""Switch leaks of the running walkers: `python -m examples.walker.leak dynamic=60`, `... off`."""

import sys

from examples.leak import main

if __name__ == "__main__":
    sys.exit(main(["walker", *sys.argv[1:]]))
