"""Settlements of Delta orders: their transactions, sent through the relayer, and their outcomes.

In: `settle` effects of won auctions, receipts, logs. Out: orders that are ACTIVE, SUSPENDED, COMPLETED or
FAILED, and their settled amounts.
Reading order: `claims`, `failures`, `owner_costs`, `settling`, `projection`, `vault_reads`,
    `funds_watch`, `auction_settled`.
"""
