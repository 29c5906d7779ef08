"""Small real trainers, each with leaks that can be switched on and off."""
