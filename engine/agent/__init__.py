"""The agent's role: bids for the orders of a venue's auctions."""
