"""A chain in this process: the port of `engine/chain`, answered by pyrevm.

In: transactions, calls, time. Out: blocks, receipts, logs, re-organisations.
Read: `embedded`, `ledger`, `evm`, `journal`, `blocks`, `waiting`.
"""
