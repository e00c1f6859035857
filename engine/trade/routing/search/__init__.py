"""Finds the best route for a swap over the makers' live books. Pure.

In: the index of books, a pair, an amount, the price of gas. Out: a plan: hops, makers, shares, amounts.
Reading order: `plan`, `paths`, `directed`, `envelope`, `ladders`, `gas`, `pathfinder`.
"""
