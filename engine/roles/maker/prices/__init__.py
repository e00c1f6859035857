"""Price sources of a market maker: a file, a random walk, a recording, or the operator's own class.

In: settings of a pair. Out: grids, whenever they change.
Reading order: `source`, `static`, `random_walk`, `replay`.
"""
