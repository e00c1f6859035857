"""Settlements under way, and their outcomes on the chain.

In: `settle` effects, receipts, logs. Out: ACTIVE, SUSPENDED, COMPLETED or FAILED orders; fills.
Read: `claims`, `failures`, `settling`, `projection`, `funds_watch`, `auction_settled`.
"""
