"""The roles and the capabilities that they share.

In: settings. Out: a running venue, maker, agent, devnet or command.
Reading order: `lifecycle`, `host/`, `store/`, `chain/`, `console/`, `trade/`, `roles/`, `trader/`, `dev/`,
    `cli/`.
"""
