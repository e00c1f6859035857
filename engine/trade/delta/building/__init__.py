"""Builds Delta orders from issued routes, and lists the yield strategies that an order can name.

In: an issued route and the owner's parameters. Out: an order for a wallet to sign.
Reading order: `order_kinds`, `build`, `share_prices`, `yield_watch`.
"""
