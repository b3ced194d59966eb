"""Tells you, with a guaranteed error rate, when a policy has met a world that is worse for its task."""
