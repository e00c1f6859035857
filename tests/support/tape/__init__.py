"""Rows of trades, and tapes to test with."""
