"""Certificates: what is promised about a policy's expected cost, and how anybody can check it."""
