"""Fees of bridges, kept current: the cost of a transfer of any amount on each lane.

In: the bridges' public APIs (Across, CCTP). Out: the newest fee of each lane, with its limits and its age.
Reading order: `fee_answers`, `lane_fees`.
"""
