"""Memory in the experiment tracker of a trainer: one module for each tracker, imported on use."""
