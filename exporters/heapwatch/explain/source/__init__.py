"""What a program's source says: what its statements do, and the lines that fill and empty a container."""
