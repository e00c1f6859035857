"""`cambist order`: places, follows, lists and cancels Delta orders.

In: arguments. Out: signed orders, their outcomes, tables.
Reading order: `order`, `order_options`, `order_bridging`, `order_place`, `order_swap`, `order_limit`,
    `order_twap`, `order_watch`, `order_list`, `order_cancel`, `order_withdraw`.
"""
