"""Shows the generated dashboards if Grafana is not installed."""
