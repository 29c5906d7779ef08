"""Evolutionary reinforcement learning: a population of DDPG agents trades on a generated market."""
