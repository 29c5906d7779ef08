"""The numbers of three documents whose limits are those of a profile, as the monitor tells them."""

from functools import partial

from heapwatch.cli.reporter import described
from heapwatch.collectors.readings import LEVEL_SERIES
from heapwatch.judge.component import Component
from heapwatch.judge.limits import ALIASES, ExceededLimit
from tests.documents.boundaries import Boundary
from tests.documents.rules import alerts_at, alerts_growing


def told(profile: str, resource: str, component: str, value: float, per: str = "") -> list[str]:
    """What the monitor prints of a level, or of growth `per` cycle, of a trainer with this profile.

    Args:
        profile: whose limits apply.
        resource: of what.
        component: of what.
        value: the level in bytes or items, or the growth in a cycle.
        per: the cycle; empty for a level.

    """
    exported = next((alias for alias, of in ALIASES.items() if of == profile), profile)
    series, label = LEVEL_SERIES[resource]
    key = Component(resource, component)
    text = f'trainer_limit_profile{{profile="{exported}"}} 1\n{series}{{{label}="{component}"}} 1\n'
    alerts = alerts_growing(text, key, value, per) if per else alerts_at(text, key, value)
    return [described(ExceededLimit(**alert)) for alert in alerts]


def level(
    sentence: str, profile: str, resource: str, component: str, number: float, below: list[str], at: list[str]
) -> Boundary:
    return Boundary(sentence, partial(told, profile, resource, component), number, below, at)


def growth(
    sentence: str, profile: str, resource: str, component: str, per: str, limit: float, above: str
) -> Boundary:
    """More than a limit in a cycle: nothing is said of the limit itself."""
    return Boundary(sentence, partial(told, profile, resource, component, per=per), limit + 1, [], [above])


ERL = [
    level(
        "Memory usage should stabilize at ~30-40GB", "erl-trading", "memory", "trainer", 40e9,
        [], ["WARNING: memory = 40000.0MB (>= 40000.0MB)"],
    ),
    level(
        "Generation 13 crash with 175GB RAM exhaustion", "erl-trading", "memory", "trainer", 100e9,
        ["WARNING: memory = 100000.0MB (>= 40000.0MB)"], ["CRITICAL: memory = 100000.0MB (>= 100000.0MB)"],
    ),
    level(
        "GPU memory stable under 20 GB", "erl-trading", "gpu_memory", "0", 20e9,
        [], ["WARNING: gpu_memory 0 = 20000.0MB (>= 20000.0MB)"],
    ),
    level(
        "DDPGAgent: 30+ (LEAK!)", "erl-trading", "objects", "DDPGAgent", 30,
        [], ["WARNING: objects DDPGAgent = 30 (>= 30)"],
    ),
    level(
        "If pending > 50, uploads are slow", "erl-trading", "events", "upload_queue", 51,
        [], ["WARNING: events upload_queue = 51 (>= 51)"],
    ),
    growth(
        "Large increases (5GB+ per generation = LEAK!)", "erl-trading", "memory", "trainer", "generation",
        5e9, "WARNING: memory grows by 5000.0MB/generation (limit 5000.0MB/generation)",
    ),
    growth(
        "~500MB/gen after the fixes", "erl-trading-aggressive", "memory", "trainer", "generation", 500e6,
        "WARNING: memory grows by 500.0MB/generation (limit 500.0MB/generation)",
    ),
]  # fmt: skip
FIRE = [
    *(
        level(
            f"{sentence} max", "fire-dqn", resource, name, bound + 1,
            [], [f"WARNING: {resource} {name} = {bound + 1} (>= {bound + 1})"],
        )
        for sentence, resource, name, bound in (
            ("Agent losses: 1000 entries", "events", "losses", 1000),
            ("Agent rewards: 1000 entries", "events", "rewards", 1000),
            ("Experience buffer: 2000 entries", "buffer", "experience", 2000),
            ("Step times tracking: 100 entries", "events", "step_times", 100),
            ("Collection times: 20 entries", "events", "collection_times", 20),
        )
    ),
    growth(
        "Memory usage should remain constant throughout training", "fire-dqn", "memory", "trainer", "episode",
        10e6, "WARNING: memory grows by 10.0MB/episode (limit 10.0MB/episode)",
    ),
]  # fmt: skip
METTA = [
    growth(
        "memory_leak_threshold_mb: 5.0 (Warn if growth > N MB/epoch)", "metta", "object_size",
        "trainer.stats", "epoch", 5e6,
        "WARNING: object_size trainer.stats grows by 5.0MB/epoch (limit 5.0MB/epoch)",
    ),
]  # fmt: skip
