"""`cambist demo`: runs a market maker, a venue, agents and traders on two chains, and prints each step.

In: nothing. Out: each step's result on the terminal; an exception if a step fails.
Reading order: `foundations`, `settlement`, `market_maker`, `venue`, `place_settings`, `balances`, `swaps`,
    `order_scene`, `orders`, `waiting_orders`, `otc_orders`, `bridged_orders`, `earning_orders`.
"""
