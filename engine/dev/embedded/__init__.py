"""The embedded chain: implements the chain port of `engine/chain` in this process, on pyrevm.

In: transactions, calls, time. Out: blocks, receipts, logs, re-organisations.
Read: `embedded`, `ledger`, `evm`, `journal`, `blocks`, `waiting`.
"""
