"""Shows the generated dashboards where Grafana is not installed."""
