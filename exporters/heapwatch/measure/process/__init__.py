"""The memory of processes, from the operating system and the allocators."""
