"""Metrics, read from the counters that each part keeps.

In: `statistics()` of the parts. Out: families of Prometheus metrics.
Read: `metrics`, `loop_lag`, `feed_metrics`, `order_metrics`, `delta_metrics`, `otc_metrics`.
"""
