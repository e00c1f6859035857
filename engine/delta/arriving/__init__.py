"""Swaps on the destination of orders across chains: made when the bridge has delivered, and verified by logs.

    ARRIVED -> firm quotes for the beneficiary -> simulated -> relayer.submit    ArrivalSwapped -> SWAPPED
            \\-- no quotes until the signed time -> payOut                        ArrivalPaidOut -> PAID_OUT

In: orders whose transfers have arrived, makers' firm quotes, logs of the destination. Out: transactions of
    its relayer, ends of transfers, steps of orders.
Read: `arrival_place`, `arrival_ends`, `swap_calls`, `arrival_swaps`, `arrival_watch`.
"""
