"""The version of the package, in its only home."""

__version__ = "0.2.0"
