"""Rules, discovery, routes and the receiver as a Helm chart, from the files of the native stack."""
