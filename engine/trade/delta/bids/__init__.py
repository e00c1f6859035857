"""Agents, i.e. bidders for the orders of one chain, and their bids: requests, answers, limits, simulations.

In: the orders of an auction round, agents' answers. Out: bids with the call that settles them and its
simulated result; cool-downs of agents at fault.
Reading order: `agent_client`, `agent_pace`, `agent_rest`, `agent_caller`, `bids`, `bid_merit`, `simulation`.
"""
