"""The engine's access to a chain: one port, backed by JSON-RPC nodes or by an EVM in this process.

In: calls, transactions, questions about blocks. Out: answers at one block, receipts, logs.
Read: `port`, `nodes/`, `pulse`, `holdings`, `reverts`, `artifacts`, `proceeds`, `transact`, `relay/`,
    `index/`, `deploy/`.
"""
