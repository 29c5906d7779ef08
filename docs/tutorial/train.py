"""A small trainer with a leak that its author does not know of."""

import random
import time


class Agent:
    def __init__(self):
        self.weights = [0.0] * 1000
        self.history = []

    def act(self, observation):
        return random.choice([-1, 1])

    def learn(self, transition):
        self.history.append({"transition": transition, "gradient": [random.random()] * 2000})


class Environment:
    def reset(self):
        return [0.0] * 4

    def step(self, action):
        return [random.random() for _ in range(4)], random.random(), random.random() < 0.05


def train(episodes):
    agent, environment = Agent(), Environment()
    for _ in range(episodes):
        observation, done = environment.reset(), False
        while not done:
            action = agent.act(observation)
            following, reward, done = environment.step(action)
            agent.learn((observation, action, reward, following))
            observation = following
            time.sleep(0.005)


if __name__ == "__main__":
    train(episodes=100_000)
