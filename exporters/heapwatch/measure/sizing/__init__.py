"""The bytes that objects hold."""
