"""Delta orders: fronts, stories, bids, auctions, orders that wait."""
