"""Rules, discovery and the receiver as Kubernetes objects and as a Helm chart, from one configuration."""
