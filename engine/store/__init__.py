"""The durable store, behind one port. The store knows tables and units, not orders.

In: units of changes, and queries. Out: outcomes once they are on the disk, rows, and the log of events.
Reading order: `rows`, `tables`, `units`, `queries`, `store`, `batcher`, `backend`, `process/`, `sqlite/`,
    `postgres/`, `migrate`, `leases`, `follower`, `prune`, `retention`, `operator/`.
"""
