"""How a trainer is sampled: safe point, sources, cleanup, exposition."""
