"""What grows in a trainer that declared nothing, who holds it, and what to do about it."""
