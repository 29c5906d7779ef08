"""What a trainer serves, and the client that reads it."""
