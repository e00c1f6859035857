"""Benchmarks: each operation beside its baseline and its peers, judged by ratios of one run."""
