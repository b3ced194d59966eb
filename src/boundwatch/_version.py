"""The version of the package, in the one place that packaging and certificates read it from."""

__version__ = "0.1.0"
