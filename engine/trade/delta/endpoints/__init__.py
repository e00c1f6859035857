"""The HTTP endpoints of Delta orders.

In: HTTP requests. Out: built orders, records, cancellations, auctions, events.
Reading order: `strategies`, `build_orders`, `order_submit`, `order_reads`, `auctions`, `round_list`,
    `order_events`.
"""
