"""The venue's role: assembles the application, and holds the endpoints that are not about orders.

In: settings. Out: a served API over market makers' books, orders and chains.
Read: `app`, `quote`, `streams`, `resources`, `reference`, `webhooks`, `maker_scores`, `maker_watch`,
    `health`, `venue_metrics`.
"""
