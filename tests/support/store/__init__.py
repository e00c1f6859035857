"""Stores, rows and load for them, on both databases."""
