"""Programs that wait as people's do, work for a moment every few seconds, and check what they get."""
