"""Settings that hold for every test."""

from hypothesis import settings

# The same examples in every run; without a deadline, because the machines are shared.
settings.register_profile("boundwatch", derandomize=True, deadline=None)
settings.load_profile("boundwatch")
