"""What the project claims about its cost, as commands that anyone can rerun: `python -m benchmarks`."""
