"""The DQN that slowdowns are measured on, with a callback and with an empty one, in turns inside one run."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

import torch
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback

_BLOCK_STEPS = 40
_WARM_UP_STEPS = 3000


def dqn(device: str = "cpu") -> Any:
    """Stable-Baselines3's DQN on CartPole, on one thread of a CPU, and on another device if one is given."""
    torch.set_num_threads(1)
    buffer: dict[str, Any] = {"learning_starts": 1000, "buffer_size": 50_000, "train_freq": 4}
    return DQN("MlpPolicy", "CartPole-v1", device=device, seed=1, **buffer)


def paired_blocks(
    with_it: BaseCallback,
    pairs: int,
    *,
    prepare: Callable[[Any], None] = lambda model: None,
    during: Callable[[], AbstractContextManager[object]] = nullcontext,
    block_steps: int = _BLOCK_STEPS,
    apart: Callable[[], float] = lambda: 0.0,
    warm_up_seconds: float = 0.0,
    on_warm: Callable[[], None] = lambda: None,
    device: str = "cpu",
) -> list[tuple[float, float]]:
    """CPU time of blocks with a callback, run inside `during`, each beside its neighbour with an empty one.

    What the sum `apart` rises by in a block, in CPU seconds, is taken off it. Before the first block the
    callback runs for 3,000 steps, and so many seconds at least; then `on_warm` is called.
    """
    without = Empty()
    blocks: dict[bool, list[float]] = {False: [], True: []}
    generator = random.Random(5)

    class TakeTurns(BaseCallback):
        def __init__(self) -> None:
            super().__init__()
            self.calls, self.began, self.order = -_WARM_UP_STEPS, 0.0, [False, True]
            self.warm_at = time.monotonic() + warm_up_seconds
            self.apart = 0.0
            self.entered = ExitStack()
            self.turn: BaseCallback = with_it

        def _init_callback(self) -> None:
            for callback in (with_it, without):
                callback.init_callback(self.model)

        def _on_training_start(self) -> None:
            for callback in (with_it, without):
                callback.on_training_start(self.locals, self.globals)

        def _on_rollout_start(self) -> None:
            self.turn.on_rollout_start()

        def _on_rollout_end(self) -> None:
            self.turn.on_rollout_end()

        def _on_training_end(self) -> None:
            with_it.on_training_end()

        def update_child_locals(self, locals_: dict[str, Any]) -> None:
            self.turn.update_locals(locals_)

        def _on_step(self) -> bool:
            if self.calls >= 0:
                half, at = divmod(self.calls % (2 * block_steps), block_steps)
                if at == 0:
                    self.entered.close()
                    now = time.process_time()
                    if self.calls:
                        spent = now - self.began - (apart() - self.apart)
                        blocks[self.order[1 - half]].append(spent)
                    if half == 0:
                        generator.shuffle(self.order)
                    self.apart, self.began = apart(), time.process_time()
                    self.turn = with_it if self.order[half] else without
                    if self.order[half]:
                        self.entered.enter_context(during())
            self.turn.on_step()
            self.calls += 1
            if self.calls == 0:
                if time.monotonic() < self.warm_at:
                    self.calls = -1
                else:
                    on_warm()
            return len(blocks[True]) + len(blocks[False]) < 2 * pairs

    model = dqn(device)
    prepare(model)
    model.learn(10**9, callback=TakeTurns())
    return list(zip(blocks[True], blocks[False], strict=True))


class Empty(BaseCallback):
    """Costs what any callback costs, which is the loop's, not the tool's."""

    def _on_step(self) -> bool:
        return True
