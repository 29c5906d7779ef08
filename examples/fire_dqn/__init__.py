"""A convolutional deep Q-network places fuel breaks on a grid where fire spreads."""
