"""A convolutional deep Q-network places fuel breaks on a grid where fire spreads."""

# Each leak on purpose, and what one unit of it is. The switches read it without the libraries that train.
LEAKS = {
    "losses": "losses: the history rebound without its bound",
    "experience": "transitions: the collector's list grows past its bound (0.24 MB each)",
    "graph": "losses stored with their graph",
    "attached": "transitions in the bounded memory whose states hold the graph of a forward pass",
    "figures": "plots not closed",
}
