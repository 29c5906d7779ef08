"""A Box2D ecosystem of walking robots that learn with deep Q-learning."""
