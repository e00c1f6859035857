"""The indexer: writes rows from the contracts' logs, and deletes them after a re-organisation.

In: heads, blocks and logs. Out: rows and a cursor, one atomic write per step; the accounts whose funds moved.
Read: `ring`, `watch`, `reading`, `applied`, `indexer`.
"""
