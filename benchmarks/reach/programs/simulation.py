"""A simulation for worker processes: it keeps every frame, or the last hundred. Each step writes a byte."""

import os
import time

KEEPS_ALL = os.environ.get("SIMULATION") != "steady"
STEPS = os.open(os.environ.get("SIMULATION_STEPS", os.devnull), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


class Simulation:
    def __init__(self):
        self.trajectory = []

    def step(self):
        self.trajectory.append(bytearray(20_000))
        os.write(STEPS, b".")
        if not KEEPS_ALL:
            del self.trajectory[:-100]


simulation = Simulation()


def run(steps=None):
    """Simulate for ever, or for so many steps; the number of frames that are kept."""
    done = 0
    while steps is None or done < steps:
        simulation.step()
        done += 1
        time.sleep(0.02)
    return len(simulation.trajectory)


def episode(_seed):
    return run(50)


if __name__ == "__main__":
    run()
