"""Contracts in sentences: settlements, swaps, fills, permits, models and fuzz."""
