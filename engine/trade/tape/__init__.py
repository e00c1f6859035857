"""The tape: a venue's latest trades and their statistics, public, without owners and orders.

In: rows of settlements and of the RFQ contract's fills, as the indexers store them. Out: lists of trades,
    their statistics, streams of new trades.
Reading order: `trades`, `trade_tape`, `tape_reading`, `tape_follower`, `trade_streams`, `endpoints`.
"""
