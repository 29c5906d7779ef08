"""Formats sizes, durations, tables and Markdown, and escapes untrusted text; no other package does."""
