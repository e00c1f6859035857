"""Auction rounds of Delta orders: agents (solvers) bid, bids are simulated, winners are decided and stored.

In: orders that are due for a round. Out: for each winning bid a stored request to settle it (effect
`settle`), and for each order a record of the round.
Reading order: `due_orders`, `slice_watch`, `agents`, `own_bids`, `auction_queue`, `round_asking`,
    `simulating`, `auction`, `gas_cover`, `auction_record`, `auctioneer`.
"""
