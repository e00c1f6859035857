"""Access to an EVM chain: the interface `Chain` with its JSON-RPC client, the relayer and the indexer.

In: calls, transactions, requests for blocks and logs. Out: results as of one block, receipts, logs.
Reading order: `port`, `together`, `nodes/`, `pulse`, `holdings`, `delegation`, `reverts`, `artifacts`,
    `proceeds`, `transact`, `relay/`, `index/`, `deploy/`.
"""
