"""A submitted order or cancellation: its checks, the chain's word, and the row that is kept.

In: POST bodies. Out: a stored order and its record, or the error of the first check that fails.
Read: `submission`, `order_desk`, `cancellation`, `stored_orders`.
"""
