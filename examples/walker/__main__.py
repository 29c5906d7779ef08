"""Train the walkers: `python -m examples.walker [--leak dynamic=60] [--pace 30] [--steps N]`."""

import argparse
import os
import signal
import sys

from examples.common.leaks import leak_file, parse, write
from examples.walker.leaking import LEAKS
from examples.walker.trainer import Walker


def main() -> int:
    """Parse the command line and train until told to stop."""
    options = argparse.ArgumentParser(prog="python -m examples.walker", description=__doc__)
    options.add_argument("--port", type=int, default=int(os.environ.get("HEAPWATCH_TRAINER_PORT", "7777")))
    options.add_argument("--host", default=os.environ.get("HEAPWATCH_BIND", "127.0.0.1"))
    options.add_argument("--population", type=int, default=30, help="robots (30)")
    options.add_argument(
        "--pace", type=float, default=30.0, help="steps per second at most; 0: as fast as it goes (30)"
    )
    options.add_argument("--steps", type=int, help="stop after so many steps (never)")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--leak",
        action="append",
        default=[],
        metavar="NAME=RATE",
        help="start with this leak on, units per minute: "
        + "; ".join(f"{name} ({unit})" for name, unit in LEAKS.items()),
    )
    chosen = options.parse_args()
    try:
        write(leak_file("walker"), parse(chosen.leak, LEAKS))
    except ValueError as problem:
        options.error(str(problem))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    walker = Walker(chosen.population, chosen.seed, chosen.pace or None)
    with walker.watched(chosen.port, chosen.host) as watch:
        print(f"walker trains; metrics at http://{chosen.host}:{watch.port}/metrics", flush=True)
        try:
            walker.train(watch, chosen.steps)
        except KeyboardInterrupt:
            print("walker stopped", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
