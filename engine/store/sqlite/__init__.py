"""The SQLite back end: one file, one writing connection, a transaction a batch.

In: batches and queries. Out: outcomes and rows.
Read: `sqlite`.
"""
