"""Bridges between chains: terms that an owner signs, calldata, logs and messages.

In: terms as values, or the bytes that a chain or an attester returns. Out: calldata, addresses, typed logs.
Reading order: `bridge_terms`, `across`, `cctp`, `arrivals`.
"""
