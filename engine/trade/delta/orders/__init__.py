"""Delta orders: terms, stored documents, life cycle steps and funds. Pure, except for `live_orders`.

In: a signed order, a row. Out: the next part to settle, the next row, the record.
Reading order: `terms`, `entering`, `document`, `transfers`, `arriving`, `life`, `record`, `vault`,
    `fillable`, `funds`, `vault_checks`, `live_orders`.
"""
