"""The two options that the benchmark gives to each trainer."""

import argparse
import time


def parse():
    """The arguments, and the moment of `time.monotonic()` at which training ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--leak", action="store_true")
    args = parser.parse_args()
    return args, time.monotonic() + 60 * args.minutes
