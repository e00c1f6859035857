"""Makes firm quotes, from request bytes to signature without an await, and reserves the maker's funds for
them.

In: the body of POST /firm, the board, funds. Out: a signed order and its reservation, or a refusal.
Reading order: `quotes`, `board`, `ledger`, `recent`, `blacklist`, `takers`, `funds`, `memory`.
"""
