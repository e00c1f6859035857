"""A maker's prices as exact integers, the walk over them, and the index of all live books. Pure.

In: price levels as a maker sends them. Out: fills of an amount, mid prices, dollar values, pairs that may
    be routed.
Read: `book`, `fill`, `pair_index`, `mid_prices`, `usd_prices`.
"""
