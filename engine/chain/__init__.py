"""A chain, as the engine asks it: one port, with nodes or an EVM of this process behind it.

In: calls, transactions, questions about blocks. Out: answers at one block, receipts, logs.
Read: `port`, `nodes/`, `pulse`, `holdings`, `reverts`, `artifacts`, `proceeds`, `transact`, `relay/`,
    `index/`, `deploy/`.
"""
