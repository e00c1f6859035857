"""OTC orders of a maker or a taker: posted, filled, followed, listed, cancelled.

In: a wish, or a signed order. Out: a posted order, a fill or a cancellation on chain, and its end.
Reading order: `otc_terms`, `otc_safety`, `otc_reading`, `otc_posting`, `otc_filling`, `otc_cancelling`,
    `otc_following`, `otc_listing`, `otc_view`.
"""
