"""A Delta order: its terms, its stored document, its steps, its funds. Pure but for the rows in memory.

In: a signed order, a row. Out: the next part to settle, the next row, the record.
Read: `terms`, `document`, `life`, `record`, `funds`, `fillable`, `live_orders`.
"""
