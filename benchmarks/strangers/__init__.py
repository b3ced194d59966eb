"""Tasks that strangers wrote: their environments, policies trained here, and everybody's detectors.

``python -m benchmarks.strangers`` (or ``make strangers``) trains, rolls out, compares and writes tables
and a figure. `tasks` says what is run, `rollouts` runs it and keeps it on disk, `detectors` watch the same
streams, `runner` does all of it in parts, `report` writes.
"""
