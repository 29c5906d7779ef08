"""PromQL expressions about trainers, explanations and alerts."""
