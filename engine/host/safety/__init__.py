"""Safety controls: the kill switch, the operator's rules for makers, and private file modes.

In: small files that people, scripts and endpoints write. Out: stopped scopes, within a tenth of a second.
Reading order: `halts`, `watched_file`, `kill_switch`, `maker_rules`, `private_state`.
"""
