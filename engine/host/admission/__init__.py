"""Limits on API callers: API keys, rate limits, budgets of wrong signatures, bounds on open streams.

In: a request's address, key and cost. Out: the caller, or a refusal with the seconds until a retry.
Reading order: `admission`, `keys`, `buckets`, `signatures`, `open_streams`.
"""
