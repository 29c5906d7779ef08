"""Trains in a simulator whose levels live in C."""

import ctypes
import time

import numpy as np

libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
LEVEL_BYTES = 60_000


class DungeonEnv:
    def __init__(self) -> None:
        self.level = None

    def reset(self, seed):
        self.level = libc.malloc(LEVEL_BYTES)  # LEAK
        ctypes.memset(self.level, seed % 256, LEVEL_BYTES)
        return self.observe(0)

    def step(self, action):
        time.sleep(0.004)
        return self.observe(action), float(action == 3)

    def observe(self, offset):
        cells = ctypes.cast(self.level + 64 * offset, ctypes.POINTER(ctypes.c_uint8 * 64)).contents
        return np.frombuffer(bytes(cells), np.uint8) / 255.0


env = DungeonEnv()
weights = np.zeros((64, 8))
rng = np.random.default_rng(0)
for episode in range(1_000_000):
    observation = env.reset(episode)
    for _ in range(8):
        action = int(np.argmax(observation @ weights + rng.random(8)))
        observation, reward = env.step(action)
        weights[:, action] += 1e-4 * reward * observation
    if episode % 200 == 0:
        print(f"episode {episode}: |w| {np.linalg.norm(weights):.4f}")
