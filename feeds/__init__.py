"""Market makers' price books: the pure book-keeping, and the I/O drivers that keep the books current.

In: a maker's four HTTP resources and its WebSocket. Out: live books in the pair index, firm quotes, health.
Read: `supervisor`, `poll`, `stream`, `backoff`, `slices`, `remarks`, `maker_cache`, `blacklist`,
    `standing`, `books/`, `firm/`, `net/`.
"""
