"""How far one machine goes: the real stack under many simulated trainers. `make bench-fleet`."""
