"""Served chains, and reads of a chain that check the account, signature or permit in a user's request.

In: an account, a signature, a permit. Out: a verdict at one block, or an error that names the field.
Read: `served_chain`, `asking`, `signed_by`, `permit_proof`, `token_permits`.
"""
