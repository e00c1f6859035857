"""Market swaps: from a price route to a transaction."""
