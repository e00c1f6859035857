"""Market swaps: the Router's transaction for a priced route or for signed orders.

In: GET /prices, GET /swap, POST /transactions. Out: a sealed route; calldata for the Router.
Reading order: `endpoints`, `market_desk`, `ticket`, `funds`, `consent`, `transaction`, `unfilled`,
    `signed_orders`, `order_fills`.
"""
