"""The market maker's role: publishes and streams prices, signs firm quotes, and reserves funds for them.

In: a price source, requests of the service. Out: grids, signed firm quotes.
Reading order: `serve`, `app`, `role`, `surface`, `admin`, `maker_metrics`, `approvals`, `feed`, `stream`,
    `quoting/`, `prices/`.
"""
