"""The Delta price, the digests of issued routes, and the order that is built on one.

In: a query, live books. Out: a route with its price; an order for a wallet to sign.
Read: `price`, `issued`, `build`.
"""
