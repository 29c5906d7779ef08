"""What the example trainers share."""
