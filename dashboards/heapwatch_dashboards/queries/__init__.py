"""PromQL expressions that several dashboards show, by name and subject."""
