"""Asynchronous rollouts whose traces are kept by session until they are fetched."""

import asyncio
import itertools
import random


class Gateway:
    def __init__(self) -> None:
        self.sessions = {}

    async def complete(self, session, prompt):
        await asyncio.sleep(0.05)  # inference
        tokens = prompt + [random.randrange(150_000) for _ in range(800)]  # LEAK
        self.sessions.setdefault(session, []).append({"token_ids": tokens})  # LEAK
        return tokens

    def fetch(self, session):
        return list(self.sessions[session])

    def delete(self, session):
        self.sessions.pop(session, None)


async def rollout(gateway, session):
    tokens = [random.randrange(150_000) for _ in range(100)]
    for _ in range(3):
        tokens = await gateway.complete(session, tokens)
    traces = gateway.fetch(session)
    return sum(len(trace["token_ids"]) for trace in traces)


async def train():
    gateway, sessions = Gateway(), itertools.count()
    for step in range(1_000_000):
        episodes = [rollout(gateway, f"session-{next(sessions)}") for _ in range(3)]
        lengths = await asyncio.gather(*episodes)
        await asyncio.sleep(0.1)  # the update
        if step % 50 == 0:
            print(f"step {step}: {sum(lengths)} tokens")


asyncio.run(train())
