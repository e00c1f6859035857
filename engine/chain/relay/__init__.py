"""Relayer: gets submitted calls mined; signs, stores and broadcasts their transactions until final.

In: relay intents (calls to get mined) of the store. Out: mined transactions, and the intents' states.
Reading order: `relay_lifecycles`, `relay_state`, `relay_acts`, `fee_policy`, `relay_plan`, `relayer`.
"""
