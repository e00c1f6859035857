"""The table of HTTP endpoints, and the code that all endpoints share.

In: rows with a path, a cost, a handler, structs. Out: the served routes, the OpenAPI document, event
    streams.
Read: `routes`, `chain_parameter`, `openapi`, `event_streams`.
"""
