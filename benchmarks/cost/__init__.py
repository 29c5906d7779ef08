"""What watching costs, beside other tools; each module is one benchmark of `python -m benchmarks`."""
