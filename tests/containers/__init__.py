"""The stack in real containers, from `up` to `clean`: `make test-containers`."""
