"""Chains: a furnished chain, small EVM programs, and nodes whose answers a test sets."""
