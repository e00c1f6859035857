"""Converts the counters of the application's parts to Prometheus metrics.

In: `statistics()` of the parts. Out: families of Prometheus metrics.
Reading order: `families`, `metrics`, `loop_lag`, `feed_metrics`, `order_metrics`, `exposition`.
"""
