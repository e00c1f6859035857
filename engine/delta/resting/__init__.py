"""Limit orders that wait for their price.

In: orders, and books that change. Out: orders within reach of live books, due for an auction.
Read: `resting`, `resting_price`, `price_watch`.
"""
