"""Prices Delta routes, stores digests of issued routes, and builds orders from them.

In: the query of a quote, live books. Out: a route with its price; an order for a wallet to sign.
Reading order: `price`, `crosschain`, `issued`, `order_kinds`, `build`, `share_prices`, `yield_watch`.
"""
