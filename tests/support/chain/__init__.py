"""Chains: a furnished one, small EVM programs, nodes that say what a test has them say."""
