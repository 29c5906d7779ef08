"""One adapter for each framework. Each imports its framework, so import only the one in use."""
