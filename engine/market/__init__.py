"""Market swaps: price a route, and build the Router's transaction from it or from signed orders.

In: GET /prices, GET /swap, POST /transactions. Out: a sealed route; calldata for the Router.
Reading order: `api`, `market_desk`, `prices`, `price_route`, `no_route`, `ticket`, `funds`, `transaction`,
    `signed_orders`, `order_fills`, `unfilled`.
"""
