"""Metrics, read from the counters that each part keeps.

In: `statistics()` of the parts. Out: families of Prometheus metrics.
Read: `families`, `metrics`, `loop_lag`, `feed_metrics`, `order_metrics`.
"""
