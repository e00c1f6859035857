"""Finds the best route for a swap over live books. Pure.

In: the pair index, a pair, an amount, the price of gas. Out: a plan: hops, makers, shares, amounts.
Read: `plan`, `paths`, `directed`, `envelope`, `ladders`, `gas`, `pathfinder`.
"""
