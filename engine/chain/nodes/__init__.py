"""Nodes behind JSON-RPC: one, several, their new heads, and the checks on what they answer.

In: questions of the port. Out: checked answers; a node at fault rests and the next one is asked.
Read: `rpc`, `failover`, `json_rpc`, `heads`, `rpc_values`, `rpc_wording`, `rpc_fees`, `logs_bloom`.
"""
