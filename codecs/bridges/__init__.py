"""Bridges between chains: what an owner signs about a swap after the arrival.

In: terms as values, or the bytes that a chain returns. Out: calldata, addresses and typed events.
Read: `arrivals`.
"""
