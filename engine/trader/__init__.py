"""Clients of the two interfaces: a trader's client of a venue, and the harness that checks a maker.

In: a wish and a key, or a maker's URL. Out: a trade followed to its end, or a report.
Reading order: `client/`, `conformance/`.
"""
