"""A generated market with some momentum in it, and the environment that trades on it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DAYS, ASSETS, FEATURES = 1200, 48, 5
WINDOW = 60  # days that an agent sees
EPISODE = 25  # days that it trades
COST = 0.001

Array = NDArray[np.float32]


class Summary(NamedTuple):
    """How an episode went."""

    fitness: float
    trades: int


def make_market(seed: int) -> Array:
    """Daily features of every asset, shape (1200, 48, 5): return, three averages of it, volatility."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(0, 0.01, (DAYS, ASSETS))
    returns = np.zeros((DAYS, ASSETS))
    for day in range(1, DAYS):
        returns[day] = 0.3 * returns[day - 1] + noise[day]
    features = [returns]
    for span in (5, 20, 60):
        totals = np.cumsum(returns, axis=0)
        features.append(np.vstack([totals[:span], totals[span:] - totals[:-span]]) / span)
    features.append(np.abs(returns))
    return np.stack(features, axis=-1).astype(np.float32) * 100


class TradingEnvironment:
    """Holds positions in every asset for an episode of 25 days.

    Args:
        market: shape (days, assets, features); the environment keeps a normalised copy of it.
        seed: of the days at which episodes start.

    """

    def __init__(self, market: Array, seed: int) -> None:
        self.data: Array = (market - market.mean(axis=0)) / (market.std(axis=0) + 1e-6)
        self._returns = market[..., 0] / 100
        self._generator = np.random.default_rng(seed)
        self.episode_rewards: list[float] = []
        self.episode_actions: list[Array] = []
        self._day = WINDOW
        self._last = WINDOW
        self._positions = np.zeros(ASSETS, dtype=np.float32)

    def reset(self) -> Array:
        """Start an episode; returns the state, shape (60, 48, 5)."""
        self._day = int(self._generator.integers(WINDOW, DAYS - EPISODE - 1))
        self._last = self._day + EPISODE
        self._positions = np.zeros(ASSETS, dtype=np.float32)
        return self._state()

    def step(self, positions: Array) -> tuple[Array, float, bool]:
        """Hold `positions` (shape (48,), -1..1) for a day; returns the next state, the reward, the end."""
        turnover = float(np.abs(positions - self._positions).mean())
        self._day += 1
        reward = float((positions * self._returns[self._day]).mean()) * 100 - COST * turnover
        self._positions = positions
        self.episode_rewards.append(reward)
        self.episode_actions.append(positions)
        return self._state(), reward, self._day >= self._last

    def get_episode_summary(self) -> Summary:
        """How the episode went; its history is dropped."""
        summary = Summary(sum(self.episode_rewards), len(self.episode_actions))
        self.episode_rewards.clear()
        self.episode_actions.clear()
        return summary

    def _state(self) -> Array:
        window: Array = self.data[self._day - WINDOW : self._day].copy()
        return window
