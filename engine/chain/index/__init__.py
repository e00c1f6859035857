"""Indexer: stores the logs of cambist's contracts as rows, and deletes the rows after a re-organisation.

In: heads, blocks and logs. Out: rows and a cursor (the last block read), one atomic write per step; the
accounts whose balances or allowances may have changed.
Reading order: `ring`, `watch`, `reading`, `applied`, `indexer`.
"""
