"""Switch leaks of a running example: `python -m examples.leak walker dynamic=60`, `… walker off`."""

import importlib
import sys

from examples.common.leaks import leak_file, parse, write

EXAMPLES = ("walker", "erl_trading", "metta_ppo", "fire_dqn")


def main(arguments: list[str]) -> int:
    """Write the switches; returns the exit status, 2 for a wrong command line."""
    if not arguments or arguments[0] not in EXAMPLES:
        print(f"usage: python -m examples.leak {{{','.join(EXAMPLES)}}} NAME=RATE ... | off")
        return 2
    name, *settings = arguments
    leaks = importlib.import_module(f"examples.{name}").LEAKS
    try:
        if not settings:
            raise ValueError("no leak given: write NAME=RATE, units per minute, or off")
        rates = {} if settings == ["off"] else parse(settings, leaks)
    except ValueError as problem:
        print(problem)
        print("\n".join(f"  {leak:<14} {unit}" for leak, unit in leaks.items()))
        return 2
    write(leak_file(name), rates)
    print(f"{name}: leaks on, units per minute: {rates or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
