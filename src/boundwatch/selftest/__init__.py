"""The error rates that are promised, simulated where they are hardest to keep: `boundwatch selftest`."""

from boundwatch.selftest.simulation import Promise, simulate_promises

__all__ = ["Promise", "simulate_promises"]
