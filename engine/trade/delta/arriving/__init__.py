"""Swaps on the destination of orders across chains, made after the bridge's delivery and verified by logs.

    ARRIVED -> firm quotes for the beneficiary -> simulated -> relayer.relay     ArrivalSwapped -> SWAPPED
            \\-- no quotes until the signed time -> payOut                        ArrivalPaidOut -> PAID_OUT

In: orders whose transfers have arrived, makers' firm quotes, logs of the destination. Out: transactions of
    the destination's relayer, ends of transfers, steps of orders.
Reading order: `arrival_place`, `arrival_ends`, `swap_calls`, `arrival_swaps`, `arrival_watch`.
"""
