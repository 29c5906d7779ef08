"""Proximal policy optimisation with an LSTM over vectorised environments in child processes."""
