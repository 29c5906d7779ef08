"""A Box2D ecosystem of walking robots that learn with deep Q-learning."""

# Each leak on purpose, and what one unit of it is. The switches read it without the libraries that train.
LEAKS = {
    "static": "bodies: terrain is made again, the old one is not destroyed",
    "dynamic": "bodies: limbs of dead robots that pile up in the pool of spare parts",
    "unknown": "bodies: limbs of dead robots that nobody owns any more",
    "food": "food sources: resources made and never consumed",
    "events": "events: the list of consumptions rebound without its bound",
    "replay": "experiences: the replay buffer rebound without its bound",
    "memory": "MB: history that nobody reads",
}
