"""Hashing, signatures, keys and authentication: pure functions over bytes."""
