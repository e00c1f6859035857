"""Intake of Delta orders: checks submitted orders and cancellations, and stores them.

In: POST bodies of orders and cancellations. Out: a stored order and its public record, or the error of the
first check that fails; checks also read the chain.
Reading order: `swap_checks`, `order_worth`, `submission`, `order_desk`, `cancellation`, `stored_orders`.
"""
