"""The venue's makers, as callers and the operator see them: scores, books, exclusions.

In: requests of clients, makers and the operator. Out: scores, books, counters; rules that exclude a maker.
Reading order: `signed_callers`, `maker_scores`, `maker_books`, `maker_watch`, `operation`.
"""
