"""Nodes behind JSON-RPC: questions to a node, failover between nodes, new heads, and checks of answers.

In: questions of the port. Out: checked answers; a faulty node gets a cool-down, the next node the question.
Read: `rpc`, `failover`, `json_rpc`, `heads`, `rpc_values`, `rpc_wording`, `rpc_fees`, `logs_bloom`.
"""
