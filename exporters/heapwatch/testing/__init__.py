"""A pytest plugin that tests for leaks."""
