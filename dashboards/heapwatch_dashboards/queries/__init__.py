"""Every PromQL expression of the dashboards, by name and subject."""
