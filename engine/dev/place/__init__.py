"""A whole market place on a devnet: its settings files, and its roles in one process.

In: running chains, a layout. Out: settings files, a running venue with makers and agents.
Reading order: `layout`, `roles`, `up`.
"""
