"""Trainers: healthy, leaking, filling, two ranks of which one grows, stalled, young, ended; a machine.

They resemble the trainers the project was made for: a Box2D world, a trading population, a PPO, a DQN.
"""

from collections.abc import Callable

from tests.dashboards.gpus import filled, fragmented, gpu
from tests.dashboards.series import Clock, Series, filling, noisy, ramp, sawtooth, whole, within
from tests.dashboards.stack_scenario import stack
from tests.dashboards.trainers import Trainer


def healthy_walker(clock: Clock) -> list[Series]:
    """Everything flat after a warm-up; one small sawtooth in each cycle."""
    walker = Trainer(clock, "walker-healthy:7777", "walker", "box2d")
    walker.memory(noisy(lambda m: 420e6 + filling(210e6, 60)(m) + sawtooth(20e6, 7)(m), 2e6, 1), 16e9)
    walker.buffer("replay", filling(60_000, 70), 2_400, 60_000)
    gpu(walker, "0", noisy(1.2e9, 4e6, 12), cached=16e9, library="jax")
    walker.limits()
    _world(walker, dynamic=lambda m: 150 + 6 * (m % 3), unknown=lambda m: 0)
    walker.progress(step=3600, episode=4)
    walker.cleanups([], "bodies", 0)
    walker.says((0, "too early"), (30, "healthy"))
    return walker.series


def leaking_walker(clock: Clock) -> list[Series]:
    """Limbs of dead robots stay in the world; restarted once, leaking again; cleanups help for a while."""
    total = clock.minutes
    restart, leak = 0.25 * total, 0.4 * total
    cleaned = [0.65 * total, 0.85 * total]
    walker = Trainer(clock, "walker-leaking:7777", "walker", "box2d", started=restart)

    def leaked(m: float) -> float:
        since = next((moment for moment in reversed(cleaned) if m >= moment), leak)
        return max(m - since, 0) if m >= restart else max(m, 0) * 0.9

    walker.memory(noisy(lambda m: 600e6 + 7e6 * leaked(m) + ramp(leak, 1.5e6)(m), 2e6, 2), 4e9)
    walker.buffer("replay", filling(60_000, 70, restart), 2_400, 60_000)
    deaths = walker.clock.each(lambda m: 1.4e6 * leaked(m))
    limbs = walker.clock.each(lambda m: 30e6 + 6e6 * leaked(m))
    limb_remedy = "remove an item from trainer.ecosystem.world.limbs when its robot is removed"
    death_remedy = "keep the last ones: deque(maxlen=1000)"
    path = "trainer.ecosystem.world.limbs"
    walker.growing_path(path, "list of b2Body", "ecosystem.py:118", limbs, 0.71, limb_remedy)
    walker.growing_path("trainer.history.deaths", "list of dict", "history.py:41", deaths, 0.17, death_remedy)
    walker.limits()
    _world(walker, dynamic=lambda m: 150 + 6 * (m % 3), unknown=lambda m: float(int(4.5 * leaked(m))))
    walker.progress(step=3400, episode=4)
    walker.cleanups([(m, 5.5e6 * (m - leak) * 0.6) for m in cleaned], "bodies", 260)
    walker.add("trainer_memory_growth_bytes_per_minute", lambda m: 8.5e6 if m > leak else 0)
    for bound, hours in (("least", 5.1), ("most", 5.9)):
        left = within(lambda m, h=hours: 3600 * h, leak + 10)
        walker.add("trainer_memory_time_to_limit_seconds", left, resource="memory", bound=bound)
    walker.says((restart, "too early"), (restart + 10, "healthy"), (leak + 10, "leak"))
    walker.alert("TrainerLeak", "critical", "leak", "memory", "trainer", leak + 20)
    walker.alert("TrainerLeak", "warning", "leak", "bodies", "unknown", leak + 20)
    walker.leaks("memory", "trainer", 8.5e6, leak + 20)
    walker.leaks("bodies", "unknown", 4.5, leak + 20)
    walker.alert("TrainerLeak", "warning", "leak", "events", "death", leak + 20)
    walker.leaks("events", "death", 90, leak + 20)
    walker.alert(
        "TrainerLimitExceeded", "critical", "threshold", "memory", "trainer", 0.62 * total, 0.66 * total
    )
    over = 0.91 * total
    walker.alert("TrainerLimitExceeded", "warning", "threshold", "memory", "trainer", over)
    walker.alert("TrainerGrowthPerMinute", "warning", "growth", "memory", "trainer", leak + 10, leak + 40)
    return walker.series


def filling_trading(clock: Clock) -> list[Series]:
    """A population with huge transitions: the buffer, when full, will not fit into memory."""
    total = clock.minutes
    trading = Trainer(clock, "trading-filling:7777", "trading", "erl")
    phases = {"evaluate_population": 0.0, "train_population": 0.6e9, "evolve_population": 0.9e9}
    item, capacity = 13.5e6, 14_000
    stored = filling(0.4 * capacity, total)
    trading.memory(noisy(lambda m: 8e9 + stored(m) * item + sawtooth(0.9e9, 12)(m), 9e7, 3), 160e9, 6e9)
    trading.buffer("replay", stored, item, capacity)
    trading.buffer("history", ramp(0, 2), 1.2e6, None, attached=6)
    trading.limits(memory=120)
    trading.progress(generation=1 / 12, episode=1.5)
    for phase, base in phases.items():
        end = noisy(lambda m, b=base: 8e9 + b + stored(m // 12 * 12) * item, 5e7, len(phase))
        gain = noisy(lambda m, b=base: 0.3e9 + b / 3, 4e7, len(phase))
        trading.phase(phase, end, gain, 230, 1 / 12)
    for kind, number in (("TradingEnvironment", 2.0), ("DDPGAgent", 17.0), ("ReplayBuffer", 1.0)):
        trading.level("objects", kind, trading.add("trainer_objects", number, type=kind))
    trading.growth_per_cycle("memory", "trainer", "generation", lambda m: 2.5e9 if m > 40 else None)
    trading.cleanups([(0.7 * total, 0.8e9)], "experiences", 120)
    trading.says((0, "too early"), (20, "filling"), (0.5 * total, "will not fit"))
    left = within(lambda m: 3600 * 50 - 60 * m, 0.5 * total)
    trading.add("trainer_memory_time_to_limit_seconds", left, resource="memory", bound="least")
    trading.alert("TrainerBufferWillNotFit", "critical", "forecast", "buffer", "all", 0.5 * total)
    return trading.series


def growing_ppo(clock: Clock) -> list[Series]:
    """A PPO on two GPUs: an object grows every epoch, and the allocator's cache on one device."""
    total = clock.minutes
    ppo = Trainer(clock, "ppo-growing:7777", "metta-ppo", "torch", rank=(1, 2))
    sizes = {
        "policy.state_dict": 48e6,
        "optimizer.state_dict": 96e6,
        "trainer.stats": lambda m: 2e6 + float(int(m / 3)) * 6.5e6,
        "curriculum": 0.4e6,
    }
    ppo.memory(noisy(lambda m: 5.2e9 + 2.2e6 * m, 6e6, 4), 64e9, 3e9)
    ppo.buffer("experience", filling(262_144, 2), 8_200, 262_144)
    held = {name: ppo.add("trainer_object_size_bytes", shape, object=name) for name, shape in sizes.items()}
    for name, values in held.items():
        ppo.level("object_size", name, values)
    ppo.limits(memory=20)
    ppo.progress(step=90_000, epoch=1 / 3)
    for phase, seconds in (("rollout", 110.0), ("train", 62.0)):
        ppo.phase(phase, lambda m: 5.2e9 + 2.2e6 * (m // 3 * 3), 3.3e6, seconds, 1 / 3)
    for kind, shape in (("Tensor", whole(noisy(2300, 30, 5))), ("Episode", lambda m: float(int(m * 3)))):
        ppo.level("objects", kind, ppo.add("trainer_objects", shape, type=kind))
    ppo.growth_per_cycle("object_size", "trainer.stats", "epoch", lambda m: 6.5e6 if m > 30 else None)
    ppo.growth_per_cycle("object_size", "policy.state_dict", "epoch", lambda m: 0 if m > 30 else None)
    ppo.growth_per_cycle("memory", "trainer", "epoch", lambda m: 6.6e6 if m > 30 else None)
    gpu(ppo, "0", noisy(lambda m: 11e9 + 9e6 * m, 1e7, 8), cached=2.0e9, unusable=0.3e9)
    filled(ppo, free=10e9, per_minute=9e6, since=30)
    pool = 0.6 * total
    gpu(ppo, "1", noisy(11e9, 1e7, 8), cached=4.5e9, unusable=3.4e9, pools=ramp(pool, 4e6))
    ppo.alert("TrainerLeak", "warning", "leak", "gpu_memory", "1 other_pools", pool + 30)
    ppo.leaks("gpu_memory", "1 other_pools", 4e6, pool + 30)
    ppo.alert("TrainerLeak", "warning", "leak", "gpu_memory", "0", pool)
    ppo.leaks("gpu_memory", "0", 9e6, pool)
    fragmented(ppo, "1", 3.4e9, since=pool)
    ppo.cleanups([], "experiences", 0)
    ppo.says((0, "too early"), (20, "healthy"), (45, "growing"), (0.6 * total, "leak"))
    ppo.alert("TrainerLeak", "warning", "leak", "object_size", "trainer.stats", 0.6 * total)
    ppo.leaks("object_size", "trainer.stats", 2.2e6, 0.6 * total)
    return ppo.series


def steady_ppo(clock: Clock) -> list[Series]:
    """The other rank of the same run, in which nothing grows."""
    ppo = Trainer(clock, "ppo-steady:7777", "metta-ppo", "torch", rank=(0, 2))
    ppo.memory(noisy(5.2e9, 6e6, 14), 64e9, 3e9)
    ppo.limits(memory=20)
    ppo.progress(step=90_000, epoch=1 / 3)
    ppo.says((0, "too early"), (30, "healthy"))
    return ppo.series


def stalled_dqn(clock: Clock) -> list[Series]:
    """It still answers, but no step was made for a long time."""
    stalled = 0.8 * clock.minutes
    dqn = Trainer(clock, "dqn-stalled:7777", "fuel-breaks", "torch")
    dqn.memory(noisy(lambda m: 1.1e9 + filling(0.3e9, 100)(m), 3e6, 6), 32e9, 1.5e9)
    dqn.buffer("memory", filling(2_500, 100), 120_000, 2_500)
    dqn.limits(memory=3)
    dqn.progress(stalled, step=800, episode=2)
    dqn.cleanups([], "experiences", 0)
    dqn.says((0, "too early"), (100, "healthy"))
    dqn.alert("TrainerStalled", "critical", "health", "trainer", "progress", stalled + 5)
    return dqn.series


def young_walker(clock: Clock) -> list[Series]:
    """It began eight minutes ago: too early to judge."""
    began = clock.minutes - 8
    walker = Trainer(clock, "walker-young:7777", "walker", "box2d", began, lives=(began, float("inf")))
    walker.memory(lambda m: 380e6 + filling(90e6, 20, began)(m), 16e9)
    gpu(walker, "0", filling(2.1e9, 20, began), cached=0.4e9, library="jax")
    walker.limits()
    walker.progress(step=3600)
    walker.says((0, "too early"))
    return walker.series


def killed_sac(clock: Clock) -> list[Series]:
    """The kernel killed it twenty minutes ago, because of a list that grew without end."""
    minute = clock.minutes - 20
    sac = Trainer(clock, "sac-killed:7777", "sac", "torch", lives=(0, minute))
    sac.memory(lambda m: 2e9 + ramp(0, 20e6)(m), 9.8e9)
    sac.limits(memory=5)
    sac.progress(step=900)
    sac.says((0, "too early"), (10, "leak"))
    leak = {"path": "agent.losses", "type": "list of Tensor", "kind": "container", "site": "sac.py:61"}
    leak["remedy"] = "store loss.item()"
    sac.lost(minute, "killed by the kernel, out of memory", 8.8e9, leak, 20e6)
    return sac.series


def ended_dqn(clock: Clock) -> list[Series]:
    """It ended half an hour ago and took its target back."""
    dqn = Trainer(clock, "dqn-ended:7777", "fuel-breaks", "torch", lives=(0, clock.minutes - 30))
    dqn.memory(lambda m: 900e6 + filling(0.2e9, 60)(m), 32e9)
    gpu(dqn, "0", filling(1.4e9, 60), cached=0.8e9)
    dqn.limits(memory=3)
    dqn.progress(step=700)
    dqn.says((0, "too early"), (30, "healthy"))
    return dqn.series


def leaking_machine(clock: Clock) -> list[Series]:
    """The exporter of a machine on which three actors of four leak; the kernel killed one of them twice."""
    leak, killed = 0.4 * clock.minutes, 0.7 * clock.minutes
    node = Trainer(clock, "node:7790", "node", "machine")
    per_minute, actors, since = 12e6, "RolloutWorker of Ray job 02000000", ramp(leak, 12e6)
    node.group(actors, lambda m: 8e9 + since(m), per_minute, processes=4, growing=3)
    for number in range(14):
        node.group(f"service_{number}", 3e8 - 1e7 * number, 0.0)
    node.add("machine_memory_limit_bytes", 32e9)
    node.add("machine_memory_available_bytes", noisy(lambda m: 20e9 - since(m), 2e7, 40))
    node.add("machine_group_kills_total", lambda m: (m > killed) + (m > killed + 20) or None, group=actors)
    path = {"path": "RolloutWorker.trajectories", "type": f"list in 3 of 4 {actors}", "kind": "worker"}
    advice = {"site": "cluster.py:25", "remedy": "use list.clear()"}
    node.add("trainer_growing_path_bytes", within(lambda m: 1e9 + since(m), leak), **path)
    node.add("trainer_growing_path_items", within(lambda m: 1e3 + m, leak), **path)
    node.add("trainer_growing_path_growth_bytes_per_minute", within(per_minute, leak), **path)
    node.add("trainer_growing_path_share_ratio", within(1.0, leak), **path)
    node.add("trainer_growing_path_leak", within(1, leak), **path, **advice)
    node.add("trainer_memory_growth_bytes_per_minute", within(per_minute, leak))
    node.add("trainer_memory_time_to_limit_seconds", within(72_000, leak), resource="memory", bound="least")
    node.says((0, "too early"), (12, "healthy"), (leak, "leak"))
    node.alert("TrainerLeak", "critical", "leak", "memory", actors, leak)
    node.leaks("memory", actors, per_minute, leak)
    node.alert("TrainerProcessKilled", "critical", "health", "memory", actors, killed, killed + 30)
    return node.series


def _world(walker: Trainer, dynamic: Callable[[float], float], unknown: Callable[[float], float]) -> None:
    bodies = {"static": 24, "terrain": 60, "agent": 30, "dynamic": dynamic, "unknown": unknown}
    counts = {kind: walker.add("trainer_bodies", shape, type=kind) for kind, shape in bodies.items()}
    for kind, values in counts.items():
        walker.level("bodies", kind, values)
    walker.total(
        "bodies", [sum(value or 0 for value in moment) for moment in zip(*counts.values(), strict=True)]
    )
    entities = {"food_sources": whole(noisy(28, 2, 7)), "robots": 30.0, "obstacles": 12.0}
    for kind, shape in entities.items():
        walker.level("entities", kind, walker.add("trainer_entities", shape, type=kind))
    events = {
        "consumption": filling(1000, 40),
        "predation": filling(500, 90),
        "death": lambda m: 20 * unknown(m),
    }
    for kind, shape in events.items():
        walker.level("events", kind, walker.add("trainer_event_list_items", shape, list=kind))
    for kind, capacity in (("consumption", 1000), ("predation", 500)):
        walker.add("trainer_event_list_capacity_items", capacity, list=kind)


SCENARIOS = (
    healthy_walker,
    leaking_walker,
    filling_trading,
    growing_ppo,
    steady_ppo,
    stalled_dqn,
    young_walker,
    killed_sac,
    ended_dqn,
    leaking_machine,
    stack,
)
