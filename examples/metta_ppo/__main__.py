"""Train foragers: `python -m examples.metta_ppo [--leak stats=10] [--torch-profiler] [trainer.NAME=VALUE]`.

`trainer=simple.medium` reads `configurations/simple/medium.yaml`, and `--config FILE` any file of this form.
"""

import sys
from pathlib import Path

from examples.common.command import run
from examples.metta_ppo import LEAKS
from examples.metta_ppo.tracking import PREFIX, MemoryTracking
from examples.metta_ppo.trainer import MettaTrainer

CONFIGURATIONS = Path(__file__).parent / "configurations"


def tracking(arguments: list[str]) -> MemoryTracking:
    """The options of memory tracking, taken out of the command line. Raises ValueError for a wrong one."""
    options = MemoryTracking()
    for argument in [argument for argument in arguments if argument.startswith("trainer=")]:
        options = MemoryTracking.from_yaml(CONFIGURATIONS / f"{argument[8:].replace('.', '/')}.yaml")
        arguments.remove(argument)
    if "--config" in arguments[:-1]:
        at = arguments.index("--config")
        options = MemoryTracking.from_yaml(Path(arguments[at + 1]))
        del arguments[at : at + 2]
    overrides = [argument for argument in arguments if argument.startswith(PREFIX)]
    arguments[:] = [argument for argument in arguments if argument not in overrides]
    return options.overridden(overrides)


if __name__ == "__main__":
    try:
        chosen = tracking(sys.argv)
    except (OSError, ValueError) as problem:
        sys.exit(f"python -m examples.metta_ppo: {problem}")
    sys.exit(
        run(
            "metta_ppo",
            LEAKS,
            50.0,
            lambda own: MettaTrainer(own.seed, own.rate, chosen, own.torch_profiler),
            {"--torch-profiler": "run torch's profiler once in fifty epochs"},
        )
    )
