"""Checks submitted orders and cancellations, against the chain too, and stores them.

In: POST bodies. Out: a stored order and its record, or the error of the first check that fails.
Read: `submission`, `order_desk`, `cancellation`, `stored_orders`.
"""
