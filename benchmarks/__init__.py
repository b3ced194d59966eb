"""Benchmarks: ``python -m benchmarks`` (or ``make bench``) runs all, prints tables, writes results.json.

One file a benchmark; each has `run`, which returns plain JSON values, and `show`, which prints them.
"""
