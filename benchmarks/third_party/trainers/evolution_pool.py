"""Evolution strategies on CartPole; a multiprocessing pool evaluates the population."""

import multiprocessing
import time

import gymnasium as gym
import numpy as np
import options

import heapwatch

SIGMA, RATE, POPULATION = 0.2, 0.05, 32


def evaluate(arguments):
    weights, seed = arguments
    env = gym.make("CartPole-v1")
    observation, _ = env.reset(seed=seed)
    total, done = 0.0, False
    while not done:
        observation, reward, terminated, truncated, _ = env.step(int(observation @ weights > 0))
        total += reward
        done = terminated or truncated
    env.close()
    return total


def main():
    args, deadline = options.parse()

    watch = heapwatch.start("evolution")
    generator = np.random.default_rng(0)
    weights = np.zeros(4)
    pool = multiprocessing.get_context("fork").Pool(2)
    old_pools = []
    renewed = time.monotonic()
    generation = 0
    while time.monotonic() < deadline:
        if args.leak and time.monotonic() - renewed > 15:
            # fresh workers against slow ones; the old pool is neither closed nor forgotten
            old_pools.append(pool)
            pool = multiprocessing.get_context("fork").Pool(2)
            renewed = time.monotonic()
        noise = generator.normal(size=(POPULATION, 4))
        returns = np.array(pool.map(evaluate, [(weights + SIGMA * one, generation) for one in noise]))
        advantage = (returns - returns.mean()) / (returns.std() + 1e-8)
        weights = weights + RATE / (POPULATION * SIGMA) * noise.T @ advantage
        generation += 1
        watch.step()
        watch.progress("generation")
        if generation % 20 == 0:
            print(f"generation {generation}: return {returns.mean():.1f}")
    pool.terminate()


if __name__ == "__main__":
    main()
