"""`cambist demo`: eight scenes of traders at the venue of `cambist up`, by the public client.

In: nothing. Out: each scene's results on the terminal; an exception if a result is wrong.
Reading order: `stage`, then the scenes in their order: `quotes`, `orders`, `otc_bridges_vaults`.
"""
