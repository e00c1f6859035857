"""OTC orders: signed by a maker and posted, backed by the maker's funds, filled or cancelled on chain.

In: signed RFQ orders, logs, balances. Out: stored orders with their state and swappable balance.
Read: `api`, `terms`, `submission`, `order_desk`, `document`, `life`, `live_orders`, `balances`,
    `funds_watch`, `drafts`, `projection`, `stored_orders`, `engine`.
"""
