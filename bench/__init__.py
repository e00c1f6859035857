"""Benchmarks of cambist: operations beside baselines and other libraries, judged by ratios of time."""
