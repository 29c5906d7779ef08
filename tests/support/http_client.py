"""One client for all requests of tests that have httpx."""

from __future__ import annotations

import httpx

# `httpx.get` makes a client for each request, and reads all certificates for it: 40 ms of computing.
CLIENT = httpx.Client(timeout=10, trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
