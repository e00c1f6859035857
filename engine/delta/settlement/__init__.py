"""Settlements of Delta orders: sent to the chain through the relayer, and their outcomes.

In: `settle` effects, receipts, logs. Out: ACTIVE, SUSPENDED, COMPLETED or FAILED orders; fills.
Read: `claims`, `failures`, `settling`, `projection`, `funds_watch`, `auction_settled`.
"""
