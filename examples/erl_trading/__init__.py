"""Evolutionary reinforcement learning: a population of DDPG agents trades on a generated market."""

# Each leak on purpose, and what one unit of it is. The switches read it without the libraries that train.
LEAKS = {
    "environments": "environments made for an evaluation and kept",
    "population": "agents of the old population, kept",
    "episodes": "episode histories kept (1 MB each)",
    "tensors": "losses kept with the graph they were computed with (1 MB each)",
    "clones": "deep copies of the best agent's networks, kept",
    "figures": "fitness plots not closed",
    "uploads": "checkpoints whose upload does not end",
    "buffer": "transitions beyond the buffer's bound",
}
