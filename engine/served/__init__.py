"""A chain as the venue serves it, and the chain's answers about a user while a request waits.

In: an account, a signature, a permit. Out: a verdict at one block, or an error that names the field.
Read: `served_chain`, `asking`, `signed_by`, `permit_proof`, `token_permits`.
"""
