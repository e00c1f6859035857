"""`cambist contracts`: deployment, addresses, and the acts of an incident.

In: arguments, settings, a key. Out: transactions, or calldata for a multisig.
Read: `contracts`, `contract_options`, `contract_acts`.
"""
