"""Commands that run chains and roles on this machine, for a first look and for development.

In: options. Out: running chains and roles, their addresses, accounts and examples.
Reading order: `up`, `demo`, `devnet`.
"""
