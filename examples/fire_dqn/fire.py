"""A grid on which fire spreads with the wind, and where fuel breaks stop it."""

import numpy as np
from numpy.typing import NDArray

SIDE = 50
CHANNELS = 12
BLOCKS = 5  # a fuel break is placed in one of 5 x 5 blocks
ACTIONS = BLOCKS * BLOCKS
BREAKS = 10  # breaks an episode, one a step
SPREADS = 60

Array = NDArray[np.float32]


class FireGrid:
    """An episode is ten fuel breaks, then a fire; the reward is what did not burn."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        self._fixed = self._generator.random((CHANNELS - 3, SIDE, SIDE)).astype(np.float32)
        self.reset()

    def reset(self) -> Array:
        """A fresh landscape; returns the state, shape (12, 50, 50)."""
        self._fuel = (self._generator.random((SIDE, SIDE)) < 0.85).astype(np.float32)
        self._broken = np.zeros((SIDE, SIDE), dtype=np.float32)
        self._wind = self._generator.integers(0, 4)
        self._placed = 0
        return self._state()

    def step(self, action: int) -> tuple[Array, float, bool]:
        """Break the fuel in block `action`; returns the next state, the reward, the end."""
        row, column = divmod(action, BLOCKS)
        side = SIDE // BLOCKS
        middle = column * side + side // 2
        rows = slice(row * side, (row + 1) * side)
        wasted = float(self._broken[rows, middle].mean())
        self._broken[rows, middle : middle + 2] = 1.0
        self._fuel[rows, middle : middle + 2] = 0.0
        self._placed += 1
        if self._placed < BREAKS:
            return self._state(), -0.1 * wasted, False
        return self._state(), self._burn(), True

    def _burn(self) -> float:
        """Light the middle of the first column; returns the share of the fuel that is left, 0 to 1."""
        burning = np.zeros((SIDE, SIDE), dtype=bool)
        burning[SIDE // 2 - 2 : SIDE // 2 + 2, 0] = True
        burnt = burning.copy()
        for _ in range(SPREADS):
            reached = np.zeros_like(burning)
            reached[:, 1:] |= burning[:, :-1]
            reached[:, :-1] |= burning[:, 1:]
            reached[1:] |= burning[:-1]
            reached[:-1] |= burning[1:]
            burning = reached & (self._fuel > 0) & ~burnt & (self._generator.random((SIDE, SIDE)) < 0.9)
            burnt |= burning
        return float(1 - (burnt & (self._fuel > 0)).sum() / max(self._fuel.sum(), 1))

    def _state(self) -> Array:
        wind = np.full((SIDE, SIDE), self._wind / 4, dtype=np.float32)
        return np.concatenate([np.stack([self._fuel, self._broken, wind]), self._fixed]).astype(np.float32)
