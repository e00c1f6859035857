"""The venue's process: its assembly from all parts, its pages, health and metrics.

In: settings. Out: a served API over market makers' books, orders and chains.
Reading order: `app`, `reference`, `health`, `status_series`, `venue_metrics`.
"""
