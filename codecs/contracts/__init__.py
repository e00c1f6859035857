"""Calldata, return data and logs of the contracts, encoded and decoded by hand for speed.

In: orders and amounts, or the bytes that a chain returns. Out: calldata, or typed results and events.
Reading order: `abi`, `calldata`, `router_calldata`, `router_decoding`, `delta_calldata`, `delta_results`,
    `owner_calldata`, `signature_probe`, `vault_calldata`, `agent_desk`, `permit`, `contract_events`.
"""
