"""What leaks is decided here, from numbers alone: levels over time, growth, verdicts, time left."""
