"""A firm quote, from bytes to signature without an await, and the promises that it adds to.

In: the body of POST /firm, the board, funds. Out: a signed order and its reservation, or a refusal.
Read: `quotes`, `board`, `ledger`, `blacklist`, `takers`, `funds`, `memory`.
"""
