"""The agent's role: bids for the orders of a venue's auctions.

In: POST /solve with the orders of a round. Out: bids made of makers' firm quotes and of crossed orders.
Read: `app`, `surface`, `solver`, `strategy`, `market`, `orders`, `bids`, `firm_quotes`, `crossing`,
    `coincidence`, `kept_routes`.
"""
