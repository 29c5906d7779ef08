"""A forager on a grid, and many of them in child processes."""

import multiprocessing as mp
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SIZE = 8
OBSERVATION = 2 * SIZE * SIZE
ACTIONS = 4
EPISODE = 64
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))

Array = NDArray[np.float32]


class Forager:
    """Walks on an 8 x 8 grid and eats what it finds; an episode has 64 steps."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self.episode = 0
        self.reset()

    def reset(self) -> Array:
        """Start an episode; returns the observation, shape (128,)."""
        self._food = self._generator.random((SIZE, SIZE)) < 0.2
        self._place = (SIZE // 2, SIZE // 2)
        self._steps = 0
        self.episode += 1
        return self._observe()

    def step(self, action: int) -> tuple[Array, float, bool]:
        """Move; returns the observation, the food eaten, and whether the episode is over."""
        row, column = self._place[0] + MOVES[action][0], self._place[1] + MOVES[action][1]
        self._place = (row % SIZE, column % SIZE)
        eaten = float(self._food[self._place])
        self._food[self._place] = False
        self._steps += 1
        over = self._steps >= EPISODE
        return self.reset() if over else self._observe(), eaten, over

    def _observe(self) -> Array:
        """Food around the forager, which stands in the middle, and where it came to eat."""
        around = np.roll(self._food, (SIZE // 2 - self._place[0], SIZE // 2 - self._place[1]), axis=(0, 1))
        here = np.zeros((SIZE, SIZE), dtype=np.float32)
        here[self._place] = 1.0
        return np.concatenate([around.ravel().astype(np.float32), here.ravel()])


class Transitions(NamedTuple):
    """One step of every environment: shapes (environments, 128), (environments,), (environments,)."""

    observations: Array
    rewards: Array
    dones: NDArray[np.bool_]


class VectorEnvironments:
    """`workers` child processes with `each` environments in each.

    `leak(bytes)` makes the first worker hold on to that much more, as a simulator that forgets to free would.
    """

    def __init__(self, workers: int, each: int, seed: int) -> None:
        context = mp.get_context("fork")
        self.count = workers * each
        self._pipes: list[Connection] = []
        self._processes = []
        for worker in range(workers):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, each, seed + worker * each), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def reset(self) -> Array:
        """The first observations, shape (environments, 128)."""
        return self._ask([None] * len(self._pipes)).observations

    def step(self, actions: NDArray[np.int64]) -> Transitions:
        """One step of every environment; `actions` has shape (environments,)."""
        return self._ask(np.split(actions, len(self._pipes)))

    def leak(self, size: int) -> None:
        """Have the first worker hold on to `size` bytes."""
        self._pipes[0].send(size)

    def close(self) -> None:
        """End the workers."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(timeout=5)

    def _ask(self, questions: Sequence[NDArray[np.int64] | None]) -> Transitions:
        for pipe, question in zip(self._pipes, questions, strict=True):
            pipe.send(question)
        answers = [pipe.recv() for pipe in self._pipes]
        return Transitions(*(np.concatenate(parts) for parts in zip(*answers, strict=True)))


def _work(pipe: Connection, each: int, seed: int) -> None:
    environments = [Forager(seed + index) for index in range(each)]
    held: list[bytes] = []
    while True:
        try:
            asked = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        if isinstance(asked, int):
            held.append(b"\x01" * asked)
            continue
        if asked is None:
            steps = [(environment.reset(), 0.0, False) for environment in environments]
        else:
            steps = [
                environment.step(int(action)) for environment, action in zip(environments, asked, strict=True)
            ]
        observations, rewards, dones = zip(*steps, strict=True)
        pipe.send((np.stack(observations), np.array(rewards, np.float32), np.array(dones)))
