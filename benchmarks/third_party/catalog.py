"""Who the strangers are: what each trains with, how it is watched, and what its leak should be named by."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

TRAINERS = Path(__file__).with_name("trainers")
FAST_MINUTES = 8.0
SLOW_MINUTES = 15.0


@dataclass(frozen=True)
class Leak:
    """A leak that `--leak` switches on and that nothing declares to Heapwatch.

    Attributes:
        what: in words, for the table.
        names: a regular expression; an alert or an explanation that contains it has named the leak.
        rate: how fast, in words.
        fast: more than 1 % of the level per minute, or a container that grows with every episode.

    """

    what: str
    names: str
    rate: str
    fast: bool = True

    @property
    def minutes(self) -> float:
        """Within how many minutes of its start the leak must be reported and named."""
        return FAST_MINUTES if self.fast else SLOW_MINUTES

    def named_in(self, text: str) -> bool:
        """Say whether a text names the leak."""
        return re.search(self.names, text) is not None


@dataclass(frozen=True)
class Stranger:
    """One trainer script.

    Attributes:
        name: of its script in `trainers/`.
        what: in words, for the table.
        packages: distributions whose versions the table shows.
        watched: `snippet`, or the adapter's framework.
        ranks: processes that torchrun starts; 0 without torchrun.

    """

    name: str
    what: str
    packages: tuple[str, ...]
    watched: str
    leak: Leak
    ranks: int = 0

    @property
    def script(self) -> Path:
        """The script's path."""
        return TRAINERS / f"{self.name}.py"

    @property
    def endpoints(self) -> int:
        """How many processes serve metrics."""
        return max(self.ranks, 1)

    @property
    def versions(self) -> str:
        """The installed packages, such as `stable-baselines3 2.9.2`."""
        return ", ".join(f"{name} {_version(name)}" for name in self.packages)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"


STRANGERS = (
    Stranger(
        "sb3_dqn",
        "DQN on LunarLander",
        ("stable-baselines3", "gymnasium"),
        "stable_baselines3",
        Leak("a callback keeps each observation and info", r"\btransitions\b", "0.5 kB per step"),
    ),
    Stranger(
        "sb3_ppo_subproc",
        "PPO on BipedalWalker, four worker processes",
        ("stable-baselines3", "gymnasium"),
        "stable_baselines3",
        Leak(
            "an environment wrapper in each worker keeps its trajectory",
            r"\bworker|\btrajectory\b",
            "4 kB per step of each worker",
        ),
    ),
    Stranger(
        "sb3_sac",
        "SAC on four Pendulums",
        ("stable-baselines3", "gymnasium"),
        "stable_baselines3",
        Leak("a log of entropies keeps tensors with their graphs", r"\bentropies\b", "20 kB per step"),
    ),
    Stranger(
        "torchrl_dqn",
        "DQN on CartPole with TorchRL's Trainer",
        ("torchrl", "gymnasium"),
        "torchrl",
        Leak("a hook keeps each collected batch", r"\bbatches\b", "20 kB per batch of 200 frames"),
    ),
    Stranger(
        "lightning_transformer",
        "Lightning's demo LightningTransformer, two DataLoader workers",
        ("lightning",),
        "lightning",
        Leak(
            "a list of losses keeps their graphs and is never cleared",
            r"\bepoch_losses\b",
            "10 MB every 50 steps",
        ),
    ),
    Stranger(
        "transformers_trainer",
        "Transformers' Trainer, a GPT-2 of random weights",
        ("transformers", "accelerate"),
        "transformers",
        Leak("predictions are kept for a metric at the end", r"\bpredictions\b", "2 MB every 20 steps"),
    ),
    Stranger(
        "rllib_ppo",
        "PPO on RLlib's shipped example environment StatelessCartPole",
        ("ray", "gymnasium"),
        "rllib",
        Leak("each environment keeps its episodes", r"\bepisodes\b|RecordingCartPole", "0.4 kB per step"),
    ),
    Stranger(
        "pettingzoo_multiwalker",
        "REINFORCE on PettingZoo's multiwalker (Box2D)",
        ("pettingzoo", "box2d"),
        "snippet",
        Leak(
            "environments are made anew, kept and never closed",
            r"\bpast_envs\b|MultiWalkerEnv|parallel_env|b2World|\bEnv\b",
            "an environment every 4 episodes",
        ),
    ),
    Stranger(
        "tianshou_dqn",
        "DQN on CartPole, procedural API",
        ("tianshou", "gymnasium"),
        "snippet",
        Leak("a snapshot of the algorithm is kept every epoch", r"\bsnapshots\b", "1 MB per epoch"),
    ),
    Stranger(
        "single_file_dqn",
        "DQN in a single file",
        ("torch", "gymnasium"),
        "snippet",
        Leak("a global list of infos", r"\binfos_seen\b", "0.8 kB per step"),
    ),
    Stranger(
        "offline_3gb",
        "behaviour cloning from 3 GB in memory",
        ("torch",),
        "snippet",
        Leak(
            "a cache of features without a bound", r"\bfeature_cache\b", "0.26 MB every 50 steps", fast=False
        ),
    ),
    Stranger(
        "offline_forked",
        "behaviour cloning from 2.4 GB in memory, ten forked DataLoader workers",
        ("torch",),
        "snippet",
        Leak("logged predictions are kept", r"\bpredictions\b", "0.26 MB per step"),
    ),
    Stranger(
        "evolution_pool",
        "evolution strategies with a multiprocessing pool",
        ("gymnasium",),
        "snippet",
        Leak(
            "a new pool every 15 s, the old ones never closed",
            r"\bworker|\bold_pools\b|\bPool\b|ForkProcess",
            "two processes every 15 s",
        ),
    ),
    Stranger(
        "dataloader_workers",
        "imitation from images, DataLoader workers anew each epoch",
        ("torch",),
        "snippet",
        Leak("hard examples are kept for ever", r"\bhard_examples\b", "0.2 MB every 4 batches"),
    ),
    Stranger(
        "gym_bipedal",
        "augmented random search on BipedalWalker, plots its returns",
        ("gymnasium", "matplotlib"),
        "gymnasium",
        Leak("figures are never closed", r"[Ff]igure|\bfigs\b|\bGcf\b", "a figure every two episodes"),
    ),
    Stranger(
        "tabular_taxi",
        "tabular Q-learning on Taxi, no torch",
        ("gymnasium", "numpy"),
        "snippet",
        Leak("the agent keeps every episode", r"\bepisodes\b", "0.1 kB per step"),
    ),
    Stranger(
        "torchrun_ddp",
        "DistributedDataParallel on two ranks of torchrun",
        ("torch",),
        "snippet",
        Leak("rank 0 keeps advantages", r"\badvantages_seen\b", "16 kB every 4 steps"),
        ranks=2,
    ),
)


def chosen(words: list[str]) -> list[Stranger]:
    """Strangers whose name contains one of `words`; all without words."""
    return [one for one in STRANGERS if any(word in one.name for word in words or [""])]
