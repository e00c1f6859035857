"""The PostgreSQL back end: one transaction per batch, with a few statements over arrays.

In: batches and queries. Out: outcomes and rows.
Reading order: `postgres`, `postgres_connection`, `postgres_hosts`, `postgres_attentive`, `postgres_batch`,
    `postgres_units`, `postgres_pipe`.
"""
