"""Sets up, starts, checks and stops the stack."""
