"""The conformance harness: a verdict on any market maker, in any language.

In: a maker's URL and credentials. Out: findings by check, a verdict, reports.
Read: `check_table`, `rules`, `options`, `run`, `session`, `probe`, `exchange`, `node`, `stages/`,
    `checks/`, `report`.
"""
