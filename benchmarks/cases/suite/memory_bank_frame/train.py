"""Agents with an associative memory: a data frame of texts and embeddings."""

import time

import numpy as np
import pandas as pd


class AssociativeMemory:
    def __init__(self) -> None:
        self._memory_bank = pd.DataFrame(columns=["text", "embedding"])

    def add(self, text, embedding):
        contents = pd.DataFrame([{"text": text, "embedding": embedding}])
        self._memory_bank = pd.concat([self._memory_bank, contents], ignore_index=True)  # LEAK

    def recall(self, embedding, count=5):
        recent = self._memory_bank.tail(100)
        scores = np.stack(recent["embedding"].to_list()) @ embedding
        return recent["text"].iloc[np.argsort(scores)[-count:]].to_list()


rng = np.random.default_rng(0)
memory = AssociativeMemory()
for step in range(1_000_000):
    embedding = rng.normal(size=8000)  # LEAK
    memory.add(f"step {step}: the agent saw {rng.integers(10)} berries", embedding)
    recalled = memory.recall(rng.normal(size=8000))
    time.sleep(0.03)
    if step % 200 == 0:
        print(f"step {step}: {recalled[-1]}")
