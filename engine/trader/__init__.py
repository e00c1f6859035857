"""The other side of the wire: a trader's client, and the harness that judges a maker.

In: a wish and a key, or a maker's URL. Out: a trade followed to its end, or a report.
Reading order: `client/`, `conformance/`.
"""
