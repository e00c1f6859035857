"""The indexer: logs of the contracts become rows, and a re-organisation takes them back.

In: heads, blocks and logs. Out: rows and a cursor, one unit a step; the accounts that moved.
Read: `ring`, `watch`, `reading`, `applied`, `indexer`.
"""
