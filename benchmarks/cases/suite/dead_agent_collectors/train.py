"""A multi-agent sampler: one collector for each agent of each running episode."""

import time

import numpy as np


class AgentCollector:
    def __init__(self) -> None:
        self.observations = []
        self.rewards = []

    def add(self, observation, reward):
        self.observations.append(observation)
        self.rewards.append(reward)


class Sampler:
    def __init__(self) -> None:
        self.agent_collectors = {}

    def add(self, episode, agent, observation, reward):
        collector = self.agent_collectors.setdefault((episode, agent), AgentCollector())  # LEAK
        collector.add(observation, reward)

    def postprocess_episode(self, episode, agents, training_enabled):
        post_batches = {
            agent: np.stack(self.agent_collectors[episode, agent].observations)
            for agent in agents
            if training_enabled
        }
        for agent in post_batches:
            del self.agent_collectors[episode, agent]
        return post_batches


rng = np.random.default_rng(0)
sampler = Sampler()
weights = np.zeros(1500)
for episode in range(1_000_000):
    training_enabled = episode % 3 != 2  # every third episode evaluates
    for _ in range(25):
        for agent in ("red", "blue"):
            sampler.add(episode, agent, rng.normal(size=1500), rng.random())  # LEAK
        time.sleep(0.004)
    for batch in sampler.postprocess_episode(episode, ("red", "blue"), training_enabled).values():
        weights += 1e-3 * batch.mean(axis=0)
    if episode % 50 == 0:
        print(f"episode {episode}: |w| {np.linalg.norm(weights):.3f}")
