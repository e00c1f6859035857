"""Firm quotes for a plan: asks all its makers at once, checks the quotes, replaces failing makers, keeps
scores.

In: a plan, a user, a deadline. Out: signed fills within the user's bound, or no route; scores of makers.
Read: `firm_desk`, `firm_parts`, `legs`, `firm_route`, `firm_proof`, `firm_scores`, `fault_notices`.
"""
