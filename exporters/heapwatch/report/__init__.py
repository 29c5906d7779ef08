"""Reports on recorded runs."""
