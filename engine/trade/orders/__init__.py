"""Parts shared by Delta and OTC orders: life cycles, orders in memory, units, timers, funds, chains.

In: new orders, events of the store, blocks. Out: life cycle steps, each one unit.
Reading order: `lifecycles`, `order_units`, `step`, `places`, `live_rows`, `scheduler`, `order_acts`,
    `accounts_watch`, `apart`, `followed_chain`, `boot`, `order_engines`.
"""
