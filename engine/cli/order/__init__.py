"""`cambist order`: Delta orders, from the price to the settlement.

In: arguments. Out: signed orders, their end, tables.
Read: `order`, `order_options`, `order_place`, `order_swap`, `order_limit`, `order_twap`, `order_watch`,
    `order_list`.
"""
