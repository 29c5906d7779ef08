"""Groups of processes of this machine: which of them grows, and a visit of one that stands for the others."""
