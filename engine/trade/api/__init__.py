"""The table of HTTP endpoints, and the code that all endpoints share.

In: table rows, each with a path, a cost, a handler and the types of its request and answer. Out: the served
    routes, the OpenAPI and AsyncAPI documents.
Reading order: `routes`, `chain_parameter`, `shared_answers`, `descriptions`, `schemas`, `examples`,
    `openapi`, `asyncapi`.
"""
