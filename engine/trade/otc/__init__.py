"""OTC orders: RFQ orders that makers sign and post, backed by makers' funds, filled or cancelled on chain.

In: signed RFQ orders, logs, balances. Out: stored orders with their state and the amount fillable now.
Reading order: `endpoints`, `terms`, `submission`, `order_desk`, `document`, `life`, `live_orders`,
    `balances`, `funds_watch`, `drafts`, `projection`, `stored_orders`, `purge`, `engine`.
"""
