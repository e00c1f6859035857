"""The demo: a market maker, a venue, agents and traders on one chain, told step by step.

In: nothing. Out: a story on the terminal, and exit status 0 if everything in it holds.
Read: `story`, `foundations`, `settlement`, `market_maker`, `venue`, `place_settings`, `balances`, `swaps`,
    `order_scene`, `orders`, `waiting_orders`, `otc_orders`.
"""
