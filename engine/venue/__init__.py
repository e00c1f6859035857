"""The venue's role: composition, and the endpoints that belong to no kind of orders.

In: settings. Out: a served API over market makers' books, orders and chains.
Read: `app`, `quote`, `streams`, `resources`, `reference`, `webhooks`, `maker_scores`, `maker_watch`,
    `health`, `venue_metrics`.
"""
