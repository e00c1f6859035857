"""Served chains, and the reads of a chain that check a user's account, signature or permit for a request.

In: an account, a signature, a permit. Out: a verdict at one block, or an error that names the field.
Read: `served_chain`, `asking`, `signed_by`, `permit_proof`, `token_permits`.
"""
