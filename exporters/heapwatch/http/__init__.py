"""The HTTP server of a trainer, and the client for it."""
