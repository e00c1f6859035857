"""Contracts on a chain: deployment, verification, addresses, and the calls of their owners and pausers.

In: artifacts, settings, keys. Out: transactions or calldata, and contracts.json.
Reading order: `deploy`, `create2_factory`, `rollout`, `verification`, `address_book`, `contract_acts`,
    `contract_roles`.
"""
