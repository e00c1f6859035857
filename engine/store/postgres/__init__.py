"""The PostgreSQL back end: a transaction a batch, a few statements over arrays each.

In: batches and queries. Out: outcomes and rows.
Read: `postgres`, `postgres_connection`, `postgres_batch`, `postgres_units`, `postgres_pipe`.
"""
