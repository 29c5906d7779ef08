"""Self-play with a Monte Carlo tree search on a 19 x 19 board."""

import time

import numpy as np

ACTIONS = 362


class MCTS:
    def __init__(self) -> None:
        self.Ps = {}
        self.Ns = {}
        self.Qsa = {}

    def search(self, board, rng, depth=4):
        state = board.tobytes()
        if state not in self.Ps:
            prior = rng.random(ACTIONS)  # LEAK
            self.Ps[state] = prior / prior.sum()  # LEAK
            self.Ns[state] = 0
            return rng.normal()
        action = int(np.argmax(self.Ps[state] * rng.random(ACTIONS)))
        child = board.copy()
        child[action % 361] += 1
        value = -self.search(child, rng, depth - 1) if depth else 0.0
        visits = self.Ns[state]
        self.Qsa[state, action] = (visits * self.Qsa.get((state, action), 0.0) + value) / (visits + 1)
        self.Ns[state] += 1
        return value


class Coach:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.mcts = MCTS()

    def execute_episode(self):
        board = np.zeros(361, np.int8)
        for _ in range(10):
            for _ in range(12):
                self.mcts.search(board, self.rng)
            board[self.rng.integers(361)] += 1
            time.sleep(0.03)
        return float(board.sum())


coach = Coach()
for episode in range(1_000_000):
    coach.execute_episode()
    if episode % 20 == 0:
        print(f"episode {episode}: {len(coach.mcts.Ps)} positions")
