"""Runs the simulation in three workers of the kind that the first argument names."""

import multiprocessing
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import simulation

WORKERS = 3
SCRIPT = str(Path(__file__).with_name("simulation.py"))


def processes(method):
    context = multiprocessing.get_context(method)
    for _ in range(WORKERS):
        context.Process(target=simulation.run, daemon=True).start()
    time.sleep(1e6)


def executor():
    with ProcessPoolExecutor(WORKERS) as pool:
        while True:
            list(pool.map(simulation.episode, range(WORKERS)))


def loky():
    from joblib import Parallel, delayed

    with Parallel(WORKERS) as parallel:
        while True:
            parallel(delayed(simulation.episode)(seed) for seed in range(WORKERS))


def subproc_vec_env():
    from environments import Arena
    from stable_baselines3.common.vec_env import SubprocVecEnv

    step_all(SubprocVecEnv([Arena] * WORKERS))


def async_vector_env():
    from environments import Arena
    from gymnasium.vector import AsyncVectorEnv

    step_all(AsyncVectorEnv([Arena] * WORKERS))


def step_all(environments):
    environments.reset()
    while True:
        environments.step([0] * WORKERS)
        time.sleep(0.02)


def data_loader():
    from environments import Frames
    from torch.utils.data import DataLoader

    for _ in DataLoader(Frames(), num_workers=WORKERS):
        pass


def torchrun():
    from torch.distributed.run import main

    main(
        [
            "--nproc-per-node",
            str(WORKERS),
            "--master-port",
            "0",
            str(Path(__file__).with_name("simulation.py")),
        ]
    )


def python_children():
    for child in [subprocess.Popen([sys.executable, SCRIPT]) for _ in range(WORKERS)]:
        child.wait()


KINDS = {
    "fork": lambda: processes("fork"),
    "spawn": lambda: processes("spawn"),
    "forkserver": lambda: processes("forkserver"),
    "ProcessPoolExecutor": executor,
    "joblib (loky)": loky,
    "SubprocVecEnv": subproc_vec_env,
    "AsyncVectorEnv": async_vector_env,
    "DataLoader": data_loader,
    "torchrun": torchrun,
    "subprocess": python_children,
}

if __name__ == "__main__":
    print("ready", flush=True)
    KINDS[sys.argv[1]]()
