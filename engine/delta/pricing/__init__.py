"""Prices Delta routes, keeps digests of issued routes, and builds orders on them.

In: a query, live books. Out: a route with its price; an order for a wallet to sign.
Read: `price`, `issued`, `build`.
"""
