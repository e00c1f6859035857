"""Routing on one chain: finds routes over the makers' live books and requests firm quotes for a route.

In: settings of makers, a pair and an amount. Out: a plan with prices, and signed fills for it.
Reading order: `served`, `tokens`, `makers`, `gas_watch`, `search/`, `firm/`.
"""
