"""Judges: pure functions that check a maker's recorded answers against the specification.

In: recorded exchanges. Out: findings, each with its check.
Read: `resources`, `grids`, `life`, `auth`, `stream`, `market`, `firm`, `firm_refusals`, `signatures`,
    `load`, `hostile`.
"""
