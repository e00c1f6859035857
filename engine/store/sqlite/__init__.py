"""The SQLite back end: one file, one writing connection, one transaction per batch.

In: batches and queries. Out: outcomes and rows.
Reading order: `sqlite`.
"""
