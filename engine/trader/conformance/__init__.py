"""Conformance harness: checks a market maker over its public endpoints, and reports whether it conforms.

In: a maker's URL and credentials. Out: findings by check, a verdict, reports.
Reading order: `check_table`, `rules`, `options`, `run`, `session`, `probe`, `exchange`, `node`, `stages/`,
    `checks/`, `report`.
"""
