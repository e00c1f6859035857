"""The market maker's role: prices shown and streamed, firm quotes signed, promises kept.

In: a price source, requests of the service. Out: grids, signed firm quotes.
Read: `serve`, `app`, `role`, `surface`, `admin`, `feed`, `stream`, `quoting/`, `prices/`.
"""
