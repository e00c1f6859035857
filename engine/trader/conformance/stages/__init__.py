"""Stages of a conformance run: each sends its requests to the maker and has the answers judged.

In: a session. Out: findings.
Reading order: `stage_endpoints`, `stage_stream`, `stage_firm`, `stage_chain`, `stage_framing`,
    `stage_hostile`.
"""
