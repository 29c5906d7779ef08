"""Tests that something does not leak: a pytest plugin, and what it judges by."""
