"""Auction rounds: due orders, all agents asked at once, bids simulated, winners decided, records stored.

In: due orders. Out: a `settle` effect for each winner, and the record of the round.
Read: `due_orders`, `slice_watch`, `agents`, `auction_queue`, `round_asking`, `simulating`, `auction`,
    `auction_record`, `auctioneer`.
"""
