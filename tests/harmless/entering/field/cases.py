"""The programs, by the names that `--only` takes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.repository import REPOSITORY


class Case(NamedTuple):
    """A program, and the modules without which it cannot run."""

    command: str
    needs: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """What follows the interpreter on the command line."""
        *launcher, program = self.command.split(" -m ")
        return [*(word for one in launcher for word in ("-m", *one.split())), "-m", *_module(program)]


def _module(program: str) -> list[str]:
    name, *options = program.split()
    return [f"tests.harmless.entering.field.programs.{name}", *options]


CASES = {
    "kernel": Case("kernel", ("ipykernel", "jupyter_client")),
    "torchrun": Case("torch.distributed.run --standalone --nproc-per-node 2 -m ranks", ("torch",)),
    "DataLoader": Case("loading", ("torch",)),
    "SubprocVecEnv": Case("environments sb3", ("stable_baselines3",)),
    "AsyncVectorEnv": Case("environments gymnasium", ("gymnasium",)),
    "fork": Case("workers fork"),
    "spawn": Case("workers spawn"),
    "forkserver": Case("workers forkserver"),
    "ProcessPoolExecutor": Case("workers executor"),
    "Manager": Case("workers manager"),
    "loky": Case("workers loky", ("joblib",)),
    "ray": Case("actors", ("ray",)),
    "uvicorn": Case("servers uvicorn", ("uvicorn",)),
    "uvicorn-workers": Case("servers uvicorn-workers", ("uvicorn",)),
    "gunicorn": Case("servers gunicorn", ("gunicorn", "flask")),
    "flask": Case("servers flask", ("flask",)),
    "tensorboard": Case("servers tensorboard", ("tensorboard",)),
    "wandb": Case("runs wandb", ("wandb",)),
    "mlflow": Case("runs mlflow", ("mlflow",)),
    "thread-sleep": Case("threads sleep"),
    "thread-join": Case("threads join"),
    "thread-uvicorn": Case("threads uvicorn", ("uvicorn",)),
}


def missing_in(python: str, case: Case) -> list[str]:
    """The modules that an interpreter lacks for the program."""
    code = "import sys, importlib.util as u; print(*(n for n in sys.argv[1:] if u.find_spec(n) is None))"
    command = [python, "-c", code, *case.needs]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def pythons() -> list[str]:
    """This interpreter, and that with requirements/field.txt, which `make test-harmless` makes."""
    state = Path(os.environ.get("HEAPWATCH_STATE") or REPOSITORY / ".heapwatch")
    own = state / "field" / "bin" / "python"
    return [sys.executable, *([str(own)] if own.exists() else [])]
