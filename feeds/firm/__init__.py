"""Firm quotes: the request to a maker, the check of its answer, and cool-downs for a maker's faults.

In: an amount, a taker, a user. Out: a checked signed order, or a fault; cool-downs and size bounds.
Reading order: `firm_client`, `firm_check`, `maker_health`, `size_bounds`.
"""
