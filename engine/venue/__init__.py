"""The venue's process: its assembly from all parts, and the endpoints that are not about orders.

In: settings. Out: a served API over market makers' books, orders and chains.
Reading order: `app`, `quote`, `streams`, `bridges`, `resources`, `reference`, `webhooks`, `maker_scores`,
    `maker_books`, `maker_watch`, `operation`, `health`, `venue_metrics`.
"""
