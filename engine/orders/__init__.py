"""Orders of every kind: their life cycles, rows in memory, steps, timers, funds, and the chain they follow.

In: new orders, events of the store, blocks. Out: steps, a unit of the store each.
Read: `lifecycles`, `order_units`, `step`, `live_rows`, `scheduler`, `order_acts`, `accounts_watch`,
    `apart`, `followed_chain`, `boot`, `order_engines`.
"""
