"""Memory and state of processes, from the operating system and the allocators."""
