"""Firm quotes for a plan of a swap: requests to makers, checks of quotes, replacements, scores.

In: a plan, a user, a deadline. Out: signed fills within the user's limit, or no route; scores of makers.
Reading order: `firm_desk`, `firm_parts`, `legs`, `firm_route`, `firm_proof`, `stock`, `firm_scores`,
    `fault_notices`.
"""
