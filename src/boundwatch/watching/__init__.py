"""A stream of costs, a detector, and a state that survives a crash."""
