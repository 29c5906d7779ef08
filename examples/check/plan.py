"""What each example's leaks look like to the rules: which alert must come, and what else may."""

from dataclasses import dataclass

Named = tuple[str, str]  # resource, component

MEMORY: Named = ("memory", "trainer")
TENSORS: Named = ("objects", "Tensor")
ARRAYS: Named = ("objects", "ndarray")
LISTS: tuple[Named, ...] = (("objects", "list"), ("objects", "dict"))


@dataclass(frozen=True)
class Run:
    """One run of an example.

    Attributes:
        rate: units of the leak per minute.
        must: leaks that have to be named.
        may: consequences of the leak, which may be named as well.

    """

    example: str
    leak: str = ""
    rate: float = 0.0
    must: tuple[Named, ...] = ()
    may: tuple[Named, ...] = ()

    @property
    def id(self) -> str:
        """Name of the run."""
        return f"{self.example}-{self.leak or 'healthy'}"


RUNS = (
    Run("walker"),
    Run("walker", "static", 60, (("bodies", "static"),)),
    Run("walker", "dynamic", 60, (("bodies", "dynamic"),)),
    Run("walker", "unknown", 60, (("bodies", "unknown"),)),
    Run("walker", "food", 60, (("entities", "food_sources"),)),
    Run("walker", "events", 2000, (("events", "consumption"),)),
    Run("walker", "replay", 60_000, (("buffer", "replay"),), (MEMORY, ARRAYS)),
    Run("walker", "memory", 40, (MEMORY,)),
    Run("erl_trading"),
    Run("erl_trading", "environments", 30, (("objects", "TradingEnvironment"), MEMORY), (ARRAYS, *LISTS)),
    Run("erl_trading", "population", 60, (("objects", "DDPGAgent"), MEMORY), (TENSORS, ARRAYS, *LISTS)),
    Run("erl_trading", "episodes", 60, (MEMORY,), (ARRAYS, *LISTS)),
    Run("erl_trading", "tensors", 60, (MEMORY,), (TENSORS, ARRAYS, *LISTS)),
    Run("erl_trading", "uploads", 300, (("events", "upload_queue"),), LISTS),
    Run("erl_trading", "clones", 60, (MEMORY,), (TENSORS, ARRAYS, *LISTS)),
    Run("erl_trading", "figures", 30, (MEMORY,), (("objects", "Figure"), TENSORS, ARRAYS, *LISTS)),
    Run("erl_trading", "buffer", 400, (("buffer", "replay"),), (MEMORY, ARRAYS, *LISTS)),
    Run("metta_ppo"),
    Run("metta_ppo", "lstm", 40, (("object_size", "lstm_states"), MEMORY)),
    Run("metta_ppo", "stats", 40, (("object_size", "trainer.stats"), MEMORY)),
    Run("metta_ppo", "evals", 40, (("object_size", "trainer.evals"), MEMORY)),
    Run("metta_ppo", "policy_store", 200, (("object_size", "policy_store"),), (MEMORY,)),
    Run("metta_ppo", "workers", 40, (("memory", "worker"),)),
    Run("fire_dqn"),
    Run("fire_dqn", "losses", 3000, (("events", "losses"),)),
    # Fast enough to pass the original's bound of 2000: below it, the list may fill.
    Run("fire_dqn", "experience", 1500, (("buffer", "experience"),), (MEMORY, TENSORS)),
    Run("fire_dqn", "graph", 180, (("buffer", "tensor_losses"), MEMORY), (TENSORS,)),
    Run("fire_dqn", "figures", 30, (("objects", "Figure"), MEMORY)),
)
