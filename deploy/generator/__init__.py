"""Rules, discovery, routes, the receiver and the exporter of machines as a Helm chart."""
