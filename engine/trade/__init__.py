"""Trade at the venue: prices, and the three kinds of trade, each with its endpoints.

In: requests of users, makers' live books, logs of the chains. Out: quotes, transactions, orders and their
    events.
Reading order: `api/`, `routing/`, `served/`, `makers/`, `orders/`, `events/`, `quote/`, `market/`, `otc/`,
    `delta/`, `tape/`.
"""
