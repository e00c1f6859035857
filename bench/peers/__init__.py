"""Alternatives that a user would pick, doing the same work, each in a process of its own environment."""
