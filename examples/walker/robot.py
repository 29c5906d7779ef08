"""One robot: a chassis with limbs, driven by the motors of its joints."""

import math
import random
from typing import Any

import Box2D as b2
import numpy as np
from numpy.typing import NDArray

OBSERVATIONS = 14
ACTIONS = 9
LIMB_SIZES = [(0.12, 0.45), (0.12, 0.45), (0.1, 0.4), (0.1, 0.4), (0.25, 0.1), (0.2, 0.08)]
MOTOR_SPEEDS = (-3.0, 0.0, 3.0)


class Robot:
    """A robot owns its chassis and limbs, and takes all of them with it when it is destroyed.

    Args:
        world: the Box2D world that its bodies live in.
        x: where it starts, in metres.
        limbs: how many limbs, 4 to 6.
        group: collision group; the parts of one robot pass through each other.

    """

    def __init__(self, world: Any, x: float, limbs: int, group: int) -> None:
        self.energy = 100.0
        self.fitness = 0.0
        self.size = random.uniform(0.8, 1.2)
        filtering = b2.b2Filter(groupIndex=-group, categoryBits=2, maskBits=1)
        self.chassis = world.CreateDynamicBody(position=(x, 2.0))
        self.chassis.CreateFixture(
            shape=b2.b2PolygonShape(box=(0.6 * self.size, 0.2)), density=1.0, friction=0.6, filter=filtering
        )
        self.limbs: list[Any] = []
        self.joints: list[Any] = []
        for index, (half_width, half_height) in enumerate(LIMB_SIZES[:limbs]):
            side = -1 if index % 2 == 0 else 1
            parent, anchor_y = (self.chassis, 1.9) if index < 2 else (self.limbs[index % 2], 1.1)
            limb = world.CreateDynamicBody(position=(x + side * 0.5, anchor_y - half_height))
            limb.CreateFixture(
                shape=b2.b2PolygonShape(box=(half_width, half_height)),
                density=0.6,
                friction=0.9,
                filter=filtering,
            )
            joint = world.CreateRevoluteJoint(
                bodyA=parent,
                bodyB=limb,
                anchor=(x + side * 0.5, anchor_y),
                enableMotor=True,
                maxMotorTorque=25.0,
                enableLimit=True,
                lowerAngle=-0.9,
                upperAngle=0.9,
            )
            self.limbs.append(limb)
            self.joints.append(joint)

    @property
    def x(self) -> float:
        """Where the robot is, in metres."""
        return float(self.chassis.position.x)

    def act(self, action: int) -> None:
        """Drive the left and the right joints; `action` is one of the 9 pairs of motor speeds."""
        left, right = MOTOR_SPEEDS[action // 3], MOTOR_SPEEDS[action % 3]
        for index, joint in enumerate(self.joints):
            joint.motorSpeed = left if index % 2 == 0 else right

    def observe(self, nearest_food: float) -> NDArray[np.float32]:
        """What the robot senses: shape (14,), float32; `nearest_food` is a signed distance in metres."""
        velocity = self.chassis.linearVelocity
        angles = [joint.angle for joint in self.joints[:4]]
        speeds = [joint.speed / 5.0 for joint in self.joints[:4]]
        return np.array(
            [
                math.sin(self.chassis.angle),
                math.cos(self.chassis.angle),
                velocity.x / 5.0,
                velocity.y / 5.0,
                math.tanh(nearest_food / 10.0),
                self.energy / 100.0,
                *angles,
                *speeds,
            ],
            dtype=np.float32,
        )

    def destroy(self, world: Any, keep_limbs: bool = False) -> list[Any]:
        """Take the robot out of the world; the limbs that are left behind, if any, are returned."""
        world.DestroyBody(self.chassis)
        left_behind = list(self.limbs) if keep_limbs else []
        if not keep_limbs:
            for limb in self.limbs:
                world.DestroyBody(limb)
        self.limbs.clear()
        self.joints.clear()
        self.chassis = None
        return left_behind
