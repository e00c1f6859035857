"""Client for the JSON-RPC nodes of a chain: requests, failover, new heads, and checks of all answers.

In: calls of the interface `Chain`. Out: checked answers; after a node's failure the next node is asked.
Reading order: `rpc`, `failover`, `json_rpc`, `heads`, `rpc_values`, `rpc_wording`, `rpc_fees`, `logs_bloom`.
"""
