"""The judges: pure rules over what a maker answered.

In: recorded exchanges. Out: findings, each with its check.
Read: `resources`, `grids`, `life`, `auth`, `stream`, `market`, `firm`, `firm_refusals`, `signatures`,
    `load`, `hostile`.
"""
