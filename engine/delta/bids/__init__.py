"""Agents (bidders for the orders of one chain) and their bids: requests, answers, limits, cool-downs,
simulations.

In: the orders of a round, agents' answers. Out: bids with the call that settles them and its result.
Read: `agent_client`, `agent_pace`, `agent_rest`, `agent_caller`, `bids`, `bid_merit`, `simulation`.
"""
