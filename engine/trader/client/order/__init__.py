"""Place, follow, list and cancel a trader's Delta orders.

In: a wish for a swap, limit or TWAP order. Out: a submitted order and its end.
Reading order: `order_safety`, `bridge_safety`, `order_placing`, `order_following`, `transfer_proof`,
    `order_view`, `order_listing`, `order_cancelling`.
"""
