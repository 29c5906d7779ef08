"""A walker on a terrain of boxes that is rebuilt at each reset."""

import time

import Box2D
import numpy as np
from Box2D.b2 import fixtureDef, polygonShape


class WalkerEnv:
    def __init__(self) -> None:
        self.world = Box2D.b2World(gravity=(0, -10))
        self.terrain = []
        self.hull = self.world.CreateDynamicBody(position=(0, 5))
        self.hull.CreatePolygonFixture(box=(0.5, 0.5), density=1)

    def reset(self):
        self.destroy()
        for index in range(30):
            fixtures = [fixtureDef(shape=polygonShape(box=(1, 1, (step, 0), 0))) for step in range(8)]
            body = self.world.CreateStaticBody(position=(16 * index, 0), fixtures=fixtures)  # LEAK
            self.terrain.append(body)
        self.hull.position = (0, 5)

    def destroy(self):
        for body in self.terrain:
            self.world.DestroyBody(body)
        self.terrain = []

    def step(self, force):
        self.hull.ApplyForceToCenter((float(force), 0.0), True)
        self.world.Step(1 / 50, 6, 2)
        return self.hull.position[0]


env = WalkerEnv()
rng = np.random.default_rng(0)
push = 0.0
env.reset()
for episode in range(1_000_000):
    env.reset()  # LEAK
    noise = rng.normal()
    distance = [env.step(push + noise) for _ in range(5)][-1]
    push += 1e-2 * noise * distance
    time.sleep(0.08)
    if episode % 100 == 0:
        print(f"episode {episode}: push {push:.4f}")
