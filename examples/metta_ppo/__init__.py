"""Proximal policy optimisation with an LSTM over vectorised environments in child processes."""

# Each leak on purpose, and what one unit of it is. The switches read it without the libraries that train.
LEAKS = {
    "lstm": "MB of LSTM states of environments that are gone",
    "stats": "MB of statistics that are never cleared",
    "evals": "MB of evaluation results",
    "policy_store": "policies kept (100 of them are about 10 MB)",
    "workers": "MB in the worker processes",
}
