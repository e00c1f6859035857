"""Limits on API callers: API keys, rate limits, and the ledger of what callers cost, with its budgets.

In: a request's address, key and cost. Out: the caller, or a refusal with the seconds until a retry.
Reading order: `admission`, `keys`, `buckets`, `ledger`, `budgets`, `signatures`, `open_streams`.
"""
