"""`cambist otc`: posts, fills, cancels, lists and follows OTC orders.

In: arguments. Out: posted orders, fills, cancellations, tables.
Reading order: `otc`, `otc_options`, `otc_post`, `otc_fill`, `otc_watch`, `otc_list`, `otc_cancel`,
`otc_purge`.
"""
