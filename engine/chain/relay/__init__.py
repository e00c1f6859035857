"""The relayer: signs each transaction once, stores, broadcasts and follows it until it is final.

In: relay intents of the store. Out: mined transactions, and the intents' states.
Read: `relay_lifecycles`, `relay_plan`, `fee_policy`, `relayer`.
"""
