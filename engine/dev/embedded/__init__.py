"""Embedded chain: an Ethereum development chain in this process, whose contracts run on the library pyrevm.

The package implements `DevChain`, the interface of development chains in `engine/chain/port.py`.

In: transactions, calls, time. Out: blocks, receipts, logs, re-organisations.
Reading order: `embedded`, `ledger`, `evm`, `journal`, `blocks`, `waiting`, `kept`.
"""
