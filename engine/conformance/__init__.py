"""The conformance harness: checks any market maker over its public endpoints, and gives a verdict.

In: a maker's URL and credentials. Out: findings by check, a verdict, reports.
Read: `check_table`, `rules`, `options`, `run`, `session`, `probe`, `exchange`, `node`, `stages/`,
    `checks/`, `report`.
"""
