"""Short windows in which allocations are traced: those of Python objects, and those of C code."""
