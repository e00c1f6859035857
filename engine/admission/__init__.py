"""Callers and their budgets: API keys, rate limits, wrong signatures, open streams.

In: a request's address, key and cost. Out: the caller, or a refusal with a time to retry.
Read: `admission`, `keys`, `buckets`, `signatures`, `open_streams`.
"""
