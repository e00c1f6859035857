"""Pure functions that judge a maker's recorded answers by the rules of the specification.

In: recorded exchanges. Out: findings, each with its check.
Reading order: `resources`, `grids`, `life`, `auth`, `stream`, `market`, `firm`, `firm_refusals`,
    `signatures`, `load`, `framing`, `hostile`.
"""
