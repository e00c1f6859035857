"""The agent process, which bids in a venue's auctions of Delta orders.

In: POST /solve with the orders of an auction round. Out: bids that fill orders with makers' firm quotes, or
settle opposite orders with each other.
Reading order: `app`, `surface`, `solver`, `strategy`, `market`, `orders`, `bids`, `firm_quotes`, `crossing`,
    `coincidence`, `kept_routes`, `desk`, `agent_metrics`.
"""
