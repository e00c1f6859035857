"""Market swaps of a trader: priced, signed, sent.

In: a wish. Out: a mined transaction and its amounts.
Reading order: `swapping`, `swap_view`.
"""
