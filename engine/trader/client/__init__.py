"""A trader's side of the API: typed requests, checks before a signature, trades followed to their end.

In: a trader's wish and key. Out: an offer, a signed trade, and its outcome on chain.
Reading order: `client`, `tokens`, `terms`, `order_terms`, `safety`, `trusted_contract`, `permits`,
    `allowing`, `trader`, `outcome`, `limit_price`, `schedule`, `events`, `following`, `listing`, `swap/`,
    `order/`, `otc/`, `public/`.
"""
