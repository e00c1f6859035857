"""Limit orders that wait until the makers' order books can fill them at their limit.

In: limit orders, and books that change. Out: orders that live books can fill, due for an auction.
Reading order: `resting`, `resting_price`, `price_watch`.
"""
