"""Served chains, bridges between them, and checks of a request's account, signature or permit on a chain.

In: an account, a signature, a permit. Out: a verdict at one block, or an error that names the field; lists
    of chains, tokens, bridges and sources.
Reading order: `served_chain`, `bridge_lanes`, `open_bridges`, `delivery_gas`, `asking`, `signed_by`,
    `permit_proof`, `token_permits`, `resources`, `bridge_endpoints`.
"""
