"""The stages of a run, in turn: what each sends, and which checks judge the answers.

In: a session. Out: findings.
Read: `stage_endpoints`, `stage_stream`, `stage_firm`, `stage_chain`, `stage_hostile`.
"""
