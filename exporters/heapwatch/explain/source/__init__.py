"""What a program's source says of its containers: the lines that fill and empty them, and their limits."""
