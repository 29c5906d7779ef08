"""The simulation as an environment of Gymnasium, and as a data set of PyTorch."""

import time

import gymnasium
import numpy
import torch.utils.data
from simulation import Simulation


class Arena(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), dtype=numpy.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.simulation = Simulation()

    def reset(self, *, seed=None, options=None):
        return numpy.zeros(3, numpy.float32), {}

    def step(self, action):
        self.simulation.step()
        return numpy.zeros(3, numpy.float32), 0.0, False, False, {}


class Frames(torch.utils.data.Dataset):
    def __init__(self):
        self.simulation = Simulation()

    def __len__(self):
        return 1_000_000_000

    def __getitem__(self, index):
        time.sleep(0.02)
        self.simulation.step()
        return index
