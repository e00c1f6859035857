"""A maker's price levels as exact integers, pricing of amounts on them, and an index of live books. Pure.

In: price levels as a maker sends them. Out: fills of an amount, mid prices, dollar values and their history,
    pairs that may be routed.
Reading order: `book`, `fill`, `pair_index`, `mid_prices`, `usd_prices`, `price_ring`.
"""
