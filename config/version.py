"""The version of cambist, defined here alone."""

__version__ = "0.2.0"
