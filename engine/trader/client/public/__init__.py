"""The classes of the package `cambist.client`: trading from a program, on trio, asyncio or threads.

In: tokens and amounts as people write them, a key. Out: offers and results in whole tokens.
Reading order: `venue`, `session`, `market_trading`, `delta_trading`, `otc_trading`, `amounts`, `offers`,
    `results`, `portal`, `blocking`, `asyncio_venue`.
"""
