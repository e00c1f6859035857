"""GET /v2/quote, its stream and the Delta prices: from a query to an answer without an await.

In: a query, live books, fees of bridges. Out: a Delta route whose digest is kept, or a sealed Market route;
    prices of the last day, and what sizes cost.
Reading order: `endpoints`, `ask`, `no_route`, `delta_price`, `crosschain`, `issued`, `market_price`,
    `price_route`, `quote_streams`, `price_history`,
    `price_depth`.
"""
