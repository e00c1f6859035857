"""Market makers' price books and bridges' fees: pure book-keeping, and I/O drivers that keep them current.

In: a maker's four HTTP resources and its WebSocket, bridges' fee APIs. Out: live books in the pair index,
    firm quotes, health, fees of lanes.
Reading order: `supervisor`, `poll`, `stream`, `backoff`, `ticks`, `slices`, `durations`, `remarks`,
    `maker_cache`, `blacklist`, `standing`, `books/`, `firm/`, `bridges/`, `transport/`.
"""
