"""Environments in worker processes, which wait for the next step: `environments sb3` or `gymnasium`."""

import os
import sys

import gymnasium
import numpy

from tests.harmless.entering.field.programs.waiting import numbered, wait


def make() -> gymnasium.Env:
    return gymnasium.make("CartPole-v1")


def main(kind: str) -> None:
    # The same in this process gives what is right.
    if kind == "sb3":
        from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv

        apart, here = SubprocVecEnv([make] * 2), DummyVecEnv([make] * 2)
        for one in (apart, here):
            one.seed(0)
            one.reset()
    else:
        apart, here = gymnasium.vector.AsyncVectorEnv([make] * 2), gymnasium.vector.SyncVectorEnv([make] * 2)
        for one in (apart, here):
            one.reset(seed=0)

    def work() -> None:
        for step in range(50):
            actions = numpy.array([step % 2, step % 3 % 2])
            got, right = apart.step(actions), here.step(actions)
            assert all(map(numpy.array_equal, got[:3], right[:3]))

    workers = list(apart.processes)
    wait({"trainer": os.getpid(), **numbered("worker", [one.pid for one in workers])}, work)
    apart.close()
    assert [one.exitcode for one in workers] == [0, 0]


if __name__ == "__main__":
    main(sys.argv[1])
