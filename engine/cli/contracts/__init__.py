"""`cambist contracts`: deploys the contracts, shows their addresses, and calls owner functions in an
incident.

In: arguments, settings, a key. Out: transactions, or calldata for a multisig.
Reading order: `contracts`, `contract_options`, `contract_acts`.
"""
